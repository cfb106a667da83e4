// Ranks as processes with a GPU each, started by torchrun, srun or mpirun.
#pragma once

#include <functional>

#include "kernels/cuda/cuda_device.h"
#include "kernels/nccl/launch_environment.h"
#include "kernels/world.h"

namespace tpsim {

using GpuRankBody = std::function<Status(World&, CudaDevice&)>;

// Runs `body` as this process's rank on GPU `local_rank` (counted round where there are fewer).
//
// A thread watches the collectives: when one fails, or does not end within TPSIM_TIMEOUT seconds
// (600 when unset), all of this rank's are aborted, `body` is thrown out of the next one, and what
// happened is returned with the rank's number in front. The launcher is expected to end the job
// when one of its processes fails, as torchrun, mpirun and srun --kill-on-bad-exit do.
Status run_under_nccl(const Launch& launch, const GpuRankBody& body);

}  // namespace tpsim

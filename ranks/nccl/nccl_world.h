// Ranks as processes with a GPU each, started by torchrun, srun or mpirun.
#pragma once

#include <functional>

#include "kernels/cuda/runtime/cuda_device.h"
#include "ranks/nccl/launch_environment.h"
#include "ranks/world.h"

namespace tpsim {

using GpuRankBody = std::function<Status(World&, CudaDevice&)>;

// Gives the first rank, and its launcher, time: what all ranks meet is said once. Returns at once
// on the first rank and where MPI reports.
void let_first_speak(const Launch& launch);

// Runs `body` as this process's rank on GPU `local_rank` (counted round where there are fewer).
//
// A thread watches the collectives: when one fails, does not end within TPSIM_TIMEOUT seconds (600
// when unset), or another rank says that it has failed, all of this rank's are aborted, `body` is
// thrown out of the next one, and what happened is returned with the rank's number in front. Ranks
// other than the first return a second later, those that another threw out ten: the launcher
// is expected to end the job when one of its processes fails, as torchrun, mpirun and srun
// --kill-on-bad-exit do, so that one message is seen.
Status run_under_nccl(const Launch& launch, const GpuRankBody& body);

}  // namespace tpsim

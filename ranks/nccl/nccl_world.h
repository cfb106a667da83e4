// Ranks as processes with one GPU each, started by torchrun, srun or mpirun.
#pragma once

#include <functional>

#include "kernels/cuda/runtime/cuda_device.h"
#include "ranks/nccl/launch_environment.h"
#include "ranks/world.h"

namespace tpsim {

using GpuRankBody = std::function<Status(World&, CudaDevice&)>;

// Waits about one second on ranks other than 0. If all ranks have the same error, rank 0 reports it
// and the launcher ends the other processes meanwhile. Returns at once on rank 0, or if MPI reports
// errors.
void let_first_speak(const Launch& launch);

// Runs `body` as this process's rank on GPU `local_rank` (modulo the number of GPUs).
//
// A thread monitors the collectives. Errors are a failed collective, a collective that takes longer
// than TPSIM_TIMEOUT seconds (default 600), and a failure reported by another rank. After an error
// all collectives of this rank are aborted, and the next collective throws in `body`. The returned
// message starts with the rank's number. Ranks other than 0 return about one second later, and
// ranks stopped by another rank's failure ten seconds later. The launcher should end the job when
// one process fails, as torchrun, mpirun and srun --kill-on-bad-exit do. The user then sees only
// one message.
Status run_under_nccl(const Launch& launch, const GpuRankBody& body);

}  // namespace tpsim

// Ranks as processes with one GPU each, started by torchrun, srun or mpirun.
#pragma once

#include <functional>

#include "kernels/cuda/runtime/cuda_device.h"
#include "ranks/nccl/launch_environment.h"
#include "ranks/world.h"

namespace tpsim {

using GpuRankBody = std::function<Status(World&, CudaDevice&)>;

// Waits so that rank 0 and its launcher can report an error of all ranks first. Returns at once on
// rank 0 and if MPI reports.
void let_first_speak(const Launch& launch);

// Runs `body` as this process's rank on GPU `local_rank` (modulo the number of GPUs).
//
// A thread monitors the collectives. An error is a failed collective, a collective longer than
// TPSIM_TIMEOUT seconds (default 600), or a failure reported by another rank. After an error all
// collectives of this rank are aborted, and the next collective throws in `body`. The error is
// returned with the rank's number in front. Ranks other than 0 return a second later, and ranks
// stopped by another's failure ten seconds later. The launcher should end the job when one process
// fails, as torchrun, mpirun and srun --kill-on-bad-exit do, so that one message is visible.
Status run_under_nccl(const Launch& launch, const GpuRankBody& body);

}  // namespace tpsim

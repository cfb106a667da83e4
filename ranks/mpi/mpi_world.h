// Ranks as processes started by mpirun or srun.
#pragma once

#include <functional>
#include <string>

#include "ranks/world.h"

namespace tpsim {

// Position of this process in the job, from MPI. Host, port and token are equal on all ranks.
struct MpiPlace {
  int rank = 0, size = 1;
  int local_rank = 0;      // on this machine
  std::string first_host;  // of rank 0
  int free_port = 0;       // on that host
  std::string token;       // random secret of the job, drawn by rank 0
};
// Call between MPI's initialization and finalization. Collective.
MpiPlace mpi_place();

// Returns the world of all MPI ranks. Call between MPI's initialization and finalization.
std::unique_ptr<World> mpi_world();

// Reports an error to the user. Returns the exit code.
using MpiErrorReport = std::function<int(const Error&)>;

// Initializes MPI, runs `body` as this process's rank, and finalizes MPI. At most once per process.
//
// If `body` fails, calls `report` with the error; `report` returns the exit code. Then ends all
// processes of the job with that code, because they may wait for this process. The message starts
// with the rank's number, except on rank 0. Ranks other than 0 wait briefly before they report, so
// that an error of all ranks is reported once. A rank stopped by another rank's failure
// (CommunicatorAborted) waits ten seconds, so that normally only the failed rank reports.
//
// If a rank waits for another rank longer than TPSIM_TIMEOUT (ranks/launcher.h), the process
// reports an error of kind kMissing in the same way and exits.
Status run_under_mpi(const RankBody& body, const MpiErrorReport& report);

}  // namespace tpsim

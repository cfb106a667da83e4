// Ranks as processes that mpirun or srun started.
#pragma once

#include <functional>
#include <string>

#include "ranks/world.h"

namespace tpsim {

// Where this process stands among those of the job, as MPI knows it; host, port and token are the
// same on all.
struct MpiPlace {
  int rank = 0, size = 1;
  int local_rank = 0;      // on this machine
  std::string first_host;  // of rank 0
  int free_port = 0;       // there
  std::string token;       // that the first rank has drawn, and nobody else knows
};
// Between MPI's start and its end; every rank calls it.
MpiPlace mpi_place();

// All ranks as this process sees them, between MPI's start and its end.
std::unique_ptr<World> mpi_world();

// Tells the user; the exit code.
using MpiErrorReport = std::function<int(const Error&)>;

// Runs `body` as this process's rank, between MPI's start and its end. Once per process.
//
// When it fails, `report` is told the error with the rank's number in front (left out where the
// first rank speaks, as for a mistake that all ranks meet) and gives the exit code, and all
// processes of the job are ended with that code: the others may be waiting for this one. Others
// wait for a moment, so that a failure of all ranks is reported once, by the first; a rank
// that another has thrown out (CommunicatorAborted) says nothing.
//
// A rank that waits for another longer than TPSIM_TIMEOUT (ranks/launcher.h) reports that the
// same way, with kind kMissing, and ends its process.
Status run_under_mpi(const RankBody& body, const MpiErrorReport& report);

}  // namespace tpsim

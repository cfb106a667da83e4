// Ranks as processes that mpirun or srun started.
#pragma once

#include "kernels/world.h"

namespace tpsim {

// Whether a launcher that speaks MPI started this process. Does not start MPI.
bool started_by_mpi_launcher();

// Runs `body` as this process's rank, between MPI's start and its end. Once per process.
//
// When it fails, `report` is told the error with the rank's number in front and gives the exit
// code, and all processes of the job are ended with that code: the others may be waiting for this
// one.
Status run_under_mpi(const RankBody& body, const std::function<int(const Error&)>& report);

}  // namespace tpsim

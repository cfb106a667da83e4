// What the environment says about who started this process. Needs no MPI.
#pragma once

namespace tpsim {

// Whether a launcher that speaks MPI (mpirun, srun --mpi) started this process.
bool started_by_mpi_launcher();

// This process's number among those that the launcher started; 0 without one.
int rank_given_by_launcher();

}  // namespace tpsim

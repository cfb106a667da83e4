// From tpsim to the program that mpirun's processes run.
#pragma once

namespace tpsim {

// Replaces this process by tpsim-mpi, which lies beside it, with the same arguments. Returns only
// when that cannot be done: the exit code, the reason being printed by the first rank.
int run_as_mpi_rank(char* const* argv);

}  // namespace tpsim

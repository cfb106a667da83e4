// tpsim-mpi: `tpsim run`, `profile` or `validate` as one process of an MPI job. A program of its
// own, so that planning never needs MPI's library; tpsim turns into it under mpirun.
#include "cli/program.h"
#include "kernels/mpi/mpi_world.h"

int main(int argc, char** argv) {
  const auto body = [&](tpsim::World&) { return tpsim::run_program(argc, argv); };
  return tpsim::run_under_mpi(body, tpsim::report).ok() ? 0 : 1;
}

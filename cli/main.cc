// tpsim. A training run is looked after: its ranks are threads of a child process, or, under
// mpirun, this process gives way to the program that is one of them.
#include <string_view>

#include "cli/mpi_launch.h"
#include "cli/program.h"
#include "cli/supervisor.h"
#include "kernels/launcher.h"

int main(int argc, char** argv) {
  const bool trains = argc > 1 && std::string_view(argv[1]) == "run";
  if (!trains) return tpsim::run_and_report(argc, argv);
  if (tpsim::started_by_mpi_launcher()) return tpsim::run_as_mpi_rank(argv);
  return tpsim::supervised([&] { return tpsim::run_and_report(argc, argv); });
}

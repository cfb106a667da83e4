// tpsim. Under mpirun a command that runs ranks gives way to the program that is one of them.
// Without it, a training run is looked after: its ranks are threads of a child process.
#include <algorithm>
#include <string_view>

#include "cli/mpi_launch.h"
#include "cli/program.h"
#include "cli/supervisor.h"
#include "kernels/launcher.h"

namespace {

// validate --runs only predicts.
bool has_ranks(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  const bool reads_runs = std::any_of(argv, argv + argc, [](std::string_view word) {
    return word == "--runs" || word.starts_with("--runs=");
  });
  return command == "run" || command == "profile" || (command == "validate" && !reads_runs);
}

}  // namespace

int main(int argc, char** argv) {
  if (!has_ranks(argc, argv)) return tpsim::run_and_report(argc, argv);
  if (tpsim::started_by_mpi_launcher()) return tpsim::run_as_mpi_rank(argv);
  if (std::string_view(argv[1]) != "run") return tpsim::run_and_report(argc, argv);
  return tpsim::supervised([&] { return tpsim::run_and_report(argc, argv); });
}

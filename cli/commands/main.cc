// Main function of tpsim. Commands with ranks run in a child process, and the parent reports how it
// ended. The ranks are threads of the child. Under mpirun the child executes tpsim-mpi.
#include <fmt/format.h>

#include <variant>

#include "cli/commands/mpi_launch.h"
#include "cli/commands/program.h"
#include "core/base/standard_streams.h"
#include "ranks/launcher.h"
#include "ranks/process_signals.h"

namespace {

using tpsim::cli::Arguments;
using tpsim::cli::Command;
using tpsim::cli::Opt;

// Whether the command executes ranks. `validate --runs` only predicts.
bool has_ranks(const Arguments& arguments) {
  const bool predicts = arguments.command == Command::kValidate && arguments.has("--runs");
  return tpsim::cli::takes(arguments.command, "--device") && !predicts;
}

constexpr const char* kRemedy =
    "with --state DIR the same command continues from the last saved step";

int run(int argc, char** argv) {
  using namespace tpsim;
  using namespace tpsim::cli;
  const auto line = parse_command_line(argc, argv);
  const ErrorOutput output = error_output(argc, argv);
  if (!line.ok()) return report_once(line.error(), output);
  const auto run_here = [&] { return run_and_report(*line, output); };
  const auto* arguments = std::get_if<Arguments>(&*line);
  if (arguments == nullptr || !has_ranks(*arguments)) return run_here();
  const bool on_gpus = (*arguments)["--device"] == "cuda";
  if (started_by_mpi_launcher() && (!on_gpus || mpi_program_is_here())) {
    return supervised(fmt::format("the process of rank {}", rank_given_by_launcher()), kRemedy,
                      [&] { return run_as_mpi_rank(argv); });
  }
  // GPU ranks may use any launcher. CPU ranks need MPI: refuse to run as a task that cannot connect
  // to the other tasks.
  const auto task = lone_task(process_environment);
  if (task && !on_gpus) return refuse_lone_task(*task);
  if (arguments->command != Command::kRun) return run_here();
  return supervised("the process of the ranks", kRemedy, run_here);
}

}  // namespace

int main(int argc, char** argv) {
  tpsim::hold_standard_streams();
  return tpsim::cli::guarded([&] { return run(argc, argv); });
}

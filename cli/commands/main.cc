// Main function of tpsim. Commands with ranks run in a child process, and the parent reports how it
// ended. The ranks are threads of the child. Under mpirun the child executes tpsim-mpi.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <variant>

#include "cli/commands/program.h"
#include "core/base/standard_streams.h"
#include "ranks/launcher.h"
#include "ranks/process_signals.h"

namespace tpsim::cli {
namespace {

// Whether the command executes ranks. `validate --runs` only predicts.
bool has_ranks(const Arguments& arguments) {
  const bool predicts = arguments.command == Command::kValidate && arguments.has("--runs");
  return takes(arguments.command, "--device") && !predicts;
}

// Returns the path of tpsim-mpi, which is next to this program if it was built.
std::filesystem::path mpi_program() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path() / "tpsim-mpi";
}

// Prints an error that occurs in every process of an MPI job only once, from the first process.
// Returns the exit code.
int report_once(int rank, const Error& error, ErrorOutput output = ErrorOutput::kText) {
  if (rank == 0) return report(error, output);
  // The launcher kills the job after the first process that fails. The other ranks wait, so that
  // the printing rank ends first.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return static_cast<int>(error.kind);
}

// Replaces this process by tpsim-mpi, with the same arguments. On failure the first rank prints the
// reason, and the exit code is returned.
int run_as_mpi_rank(char* const* argv) {
  const std::filesystem::path program = mpi_program();
  ::execv(program.c_str(), argv);
  const Error error{ErrorKind::kMissing,
                    fmt::format("mpirun or srun started this tpsim, which was built without MPI "
                                "({}: {})",
                                program.string(), std::strerror(errno)),
                    "",
                    "apt-get install libopenmpi-dev openmpi-bin, then configure and build again; "
                    "or run tpsim without mpirun"};
  return report_once(rank_given_by_launcher(), error);
}

// Reports the error of a process that a launcher started but that cannot connect to the other
// processes. The first process prints the reason. Returns the exit code.
int refuse_lone_task(const LoneTask& task) {
  return report_once(
      task.rank,
      Error{ErrorKind::kMissing,
            fmt::format("{} started {} processes, but MPI does not connect them", task.launcher,
                        task.size),
            "",
            task.launcher == "srun" ? "use srun --mpi=pmix, or mpirun inside the allocation; srun "
                                      "-n 1 runs all ranks as threads of one process"
                                    : "start CPU ranks with mpirun or srun --mpi=pmix"});
}

constexpr const char* kRemedy =
    "with --state DIR the same command continues from the last saved step";

int run(int argc, char** argv) {
  const auto line = parse_command_line(argc, argv);
  const ErrorOutput output = error_output(argc, argv);
  if (!line.ok()) return report_once(rank_given_by_launcher(), line.error(), output);
  const auto run_here = [&] { return run_and_report(*line, output); };
  const auto* arguments = std::get_if<Arguments>(&*line);
  if (arguments == nullptr || !has_ranks(*arguments)) return run_here();
  const bool on_gpus = (*arguments)["--device"] == "cuda";
  if (started_by_mpi_launcher() && (!on_gpus || ::access(mpi_program().c_str(), X_OK) == 0)) {
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
}  // namespace tpsim::cli

int main(int argc, char** argv) {
  tpsim::hold_standard_streams();
  return tpsim::cli::guarded([&] { return tpsim::cli::run(argc, argv); });
}

#include "cli/commands/mpi_launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "cli/commands/program.h"

namespace tpsim::cli {
namespace {

std::filesystem::path mpi_program() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path() / "tpsim-mpi";
}

int report_once(int rank, const Error& error, ErrorOutput output = ErrorOutput::kText) {
  if (rank == 0) return report(error, output);
  // The launcher kills the job after the first process that fails. The other ranks wait, so that
  // the printing rank ends first.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return static_cast<int>(error.kind);
}

}  // namespace

bool mpi_program_is_here() { return ::access(mpi_program().c_str(), X_OK) == 0; }

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
  return report_once(error);
}

int report_once(const Error& error, ErrorOutput output) {
  return report_once(rank_given_by_launcher(), error, output);
}

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

}  // namespace tpsim::cli

#include "cli/mpi_launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "cli/program.h"
#include "kernels/launcher.h"

namespace tpsim {

int run_as_mpi_rank(char* const* argv) {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::filesystem::path program = self.parent_path() / "tpsim-mpi";
  ::execv(program.c_str(), argv);
  const Error error{ErrorKind::kMissing,
                    fmt::format("started by mpirun or srun, but this tpsim was built without MPI "
                                "({}: {})",
                                program.string(), std::strerror(errno)),
                    "",
                    "apt-get install libopenmpi-dev openmpi-bin, then configure and build again; "
                    "or run it without mpirun"};
  if (rank_given_by_launcher() == 0) return report(error);
  // The launcher ends the whole job with the first process that fails: let that be the one that
  // speaks.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return static_cast<int>(error.kind);
}

}  // namespace tpsim

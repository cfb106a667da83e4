#include "ranks/launcher.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "core/base/leading_number.h"

namespace tpsim {
namespace {

constexpr std::array kLaunchers = {
    LauncherVariables{"torchrun", false, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    // Not SLURM_NTASKS, which is also set in the shell of a batch script.
    LauncherVariables{"srun", false, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
    // mpirun: Open MPI. mpiexec: PMI-1 and PMI-2 of MPICH, Intel MPI and Slurm. PMIx has only a
    // rank variable; the other variables are Slurm's.
    LauncherVariables{"mpirun", true, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                      "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    LauncherVariables{"mpiexec", true, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
                      "MPI_LOCALNRANKS"},
    LauncherVariables{"srun --mpi=pmix", true, "PMIX_RANK", "SLURM_STEP_NUM_TASKS",
                      "SLURM_LOCALID"}};

std::optional<std::string> rank_text(const Environment& environment) {
  for (const LauncherVariables& launcher : kLaunchers) {
    if (!launcher.speaks_mpi) continue;
    if (auto text = environment(launcher.rank)) return text;
  }
  return std::nullopt;
}

}  // namespace

std::span<const LauncherVariables> launchers() { return kLaunchers; }

std::optional<int> whole_number(const std::optional<std::string>& text) {
  return text ? parse_number<int>(*text) : std::nullopt;
}

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

bool started_by_mpi_launcher() { return rank_text(process_environment).has_value(); }

int rank_given_by_launcher() { return whole_number(rank_text(process_environment)).value_or(0); }

int size_given_by_launcher() {
  for (const LauncherVariables& launcher : kLaunchers) {
    if (!launcher.speaks_mpi) continue;
    if (const auto size = whole_number(process_environment(launcher.size))) return *size;
  }
  return 0;
}

std::optional<LoneTask> lone_task(const Environment& environment) {
  if (rank_text(environment)) return std::nullopt;
  for (const LauncherVariables& launcher : kLaunchers) {
    if (launcher.speaks_mpi) continue;
    const auto rank = whole_number(environment(launcher.rank));
    const auto size = whole_number(environment(launcher.size));
    if (rank && size && *size > 1) return LoneTask{launcher.name, *rank, *size};
  }
  return std::nullopt;
}

Result<std::chrono::seconds> collective_patience(const Environment& environment) {
  constexpr std::chrono::seconds kDefault(600);
  const auto text = environment("TPSIM_TIMEOUT");
  if (!text) return kDefault;
  const std::optional<int> seconds = whole_number(text);
  if (seconds && *seconds > 0) return std::chrono::seconds(*seconds);
  return bad_input(fmt::format("'{}' is not a whole number of seconds of at least 1", *text),
                   "TPSIM_TIMEOUT");
}

}  // namespace tpsim

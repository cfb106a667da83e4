#include "ranks/launcher.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "core/leading_number.h"

namespace tpsim {
namespace {

// Of Open MPI, of PMIx (Slurm's, PRRTE's) and of PMI-1 and -2 (MPICH, Intel MPI, Slurm).
constexpr std::array kRankVariables = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

std::optional<std::string> rank_text(const Environment& environment) {
  for (const char* name : kRankVariables) {
    if (auto text = environment(name)) return text;
  }
  return std::nullopt;
}

std::optional<int> whole_number(const std::optional<std::string>& text) {
  return text ? parse_number<int>(*text) : std::nullopt;
}

// The variables of a launcher that need not speak MPI.
struct LauncherNames {
  const char* launcher;
  const char* rank;
  const char* size;
};
// Not SLURM_NTASKS: a batch script's own shell has it too.
constexpr std::array kLaunchers = {LauncherNames{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
                                   LauncherNames{"torchrun", "RANK", "WORLD_SIZE"}};

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

bool started_by_mpi_launcher() { return rank_text(process_environment).has_value(); }

int rank_given_by_launcher() { return whole_number(rank_text(process_environment)).value_or(0); }

int size_given_by_launcher() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const auto size = whole_number(process_environment(name))) return *size;
  }
  return 0;
}

std::optional<LoneTask> lone_task(const Environment& environment) {
  if (rank_text(environment)) return std::nullopt;
  for (const LauncherNames& names : kLaunchers) {
    const auto rank = whole_number(environment(names.rank));
    const auto size = whole_number(environment(names.size));
    if (rank && size && *size > 1) return LoneTask{names.launcher, *rank, *size};
  }
  return std::nullopt;
}

Result<std::chrono::seconds> collective_patience(const Environment& environment) {
  constexpr std::chrono::seconds kDefault(600);
  const auto text = environment("TPSIM_TIMEOUT");
  if (!text) return kDefault;
  const std::optional<int> seconds = whole_number(text);
  if (seconds && *seconds > 0) return std::chrono::seconds(*seconds);
  return Error{ErrorKind::kBadInput, fmt::format("'{}' is no number of seconds", *text),
               "TPSIM_TIMEOUT", ""};
}

}  // namespace tpsim

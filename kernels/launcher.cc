#include "kernels/launcher.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace tpsim {
namespace {

// Of Open MPI, of PMIx (Slurm's, PRRTE's) and of PMI-1 and -2 (MPICH, Intel MPI, Slurm).
constexpr std::array kRankVariables = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

const char* rank_text() {
  for (const char* name : kRankVariables) {
    if (const char* text = std::getenv(name)) return text;
  }
  return nullptr;
}

}  // namespace

bool started_by_mpi_launcher() { return rank_text() != nullptr; }

int rank_given_by_launcher() {
  const char* text = rank_text();
  if (text == nullptr) return 0;
  const std::string_view digits = text;
  int rank = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  return rank;
}

}  // namespace tpsim

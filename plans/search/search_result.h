// Result of a search.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/report.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// One combination of the software options that the search tries (StackChoices::parts), with the
// step time of its best plan. `step` is empty if no plan fits.
struct TriedParts {
  PartValues parts;
  std::optional<Seconds> step;
};

inline constexpr double kNoCap = std::numeric_limits<double>::max();  // no limit of a score

struct SearchResult {
  std::int64_t considered = 0;
  // Plans that fit in memory and survived pruning.
  std::int64_t feasible = 0;
  // Plans that were skipped before their memory was computed, because even their best case is
  // worse than the plans found. Also counted in `pruned`.
  std::int64_t not_as_good = 0;
  std::int64_t simulated = 0;                  // plans simulated event by event
  std::map<std::string, std::int64_t> pruned;  // reason -> number of combinations
  Seconds elapsed;
  std::vector<PlannedRun> plans;  // best first, simulated event by event
  // Value of the objective for each plan: seconds, bytes or GPU-seconds per step. Empty for a
  // Pareto front.
  std::vector<double> scores;
  // Whether plans with offload were skipped because plans fit without offload, for the objective
  // memory or a Pareto front. Plans with offload might then be faster or use less memory.
  bool offload_left_out = false;
  std::optional<PlannedRun> nearest_miss;  // plan with the lowest peak if no plan fits
  // The combinations of software options that the search tried (StackChoices::parts), best first.
  // All other members describe the first combination.
  std::vector<TriedParts> tried;
};

}  // namespace tpsim

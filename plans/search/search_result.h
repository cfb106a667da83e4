// Result of a search.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/report.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// A combination of the parts that a stack leaves open (StackChoices::parts), and the step of its
// best plan; empty if no plan fits.
struct TriedParts {
  PartValues parts;
  std::optional<Seconds> step;
};

struct SearchResult {
  std::int64_t considered = 0;
  // Plans that fit in memory and survived pruning.
  std::int64_t feasible = 0;
  // Plans pruned by their bounds before the memory check, since even their best case is slower than
  // the plans found. Also counted in `pruned`. 0 for the objective memory and for a front.
  std::int64_t not_as_good = 0;
  std::int64_t simulated = 0;                  // plans simulated event by event
  std::map<std::string, std::int64_t> pruned;  // reason -> number of combinations
  Seconds elapsed;
  std::vector<PlannedRun> plans;  // best first, simulated event by event
  // Value of the objective for each plan: seconds, bytes or GPU-seconds per step. Empty for a
  // front.
  std::vector<double> scores;
  // Offload was not requested, and plans fit without offload while memory or a front was searched.
  // Plans with offload might be faster or smaller.
  bool offload_left_out = false;
  std::optional<PlannedRun> nearest_miss;  // plan with the lowest peak if none fits
  // Combinations of the parts that the stack leaves open, best first. All other members describe
  // the first combination.
  std::vector<TriedParts> tried;
};

}  // namespace tpsim

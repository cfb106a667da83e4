// What a search found.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/report.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// One combination of the parts that a stack leaves open (StackChoices::parts), and the step of its
// best plan; none where nothing fits.
struct TriedParts {
  PartValues parts;
  std::optional<Seconds> step;
};

struct SearchResult {
  std::int64_t considered = 0;
  // Fit, and were not ruled out before as less good than the plans.
  std::int64_t feasible = 0;
  // Ruled out together or one by one as less good than the plans, before it was known whether they
  // fit; counted in `pruned` too. None where memory is the objective, nor of a front.
  std::int64_t not_as_good = 0;
  std::int64_t simulated = 0;                  // event by event: those that could be among the best
  std::map<std::string, std::int64_t> pruned;  // why a combination cannot run -> how many
  Seconds elapsed;
  std::vector<PlannedRun> plans;  // best first, simulated event-exactly
  // Of each what the objective counts in a step: seconds, bytes, or seconds of a GPU at work. Empty
  // for a front.
  std::vector<double> scores;
  // Nobody asked to offload the optimizer, memory is the objective or the answer a front, and plans
  // fit without it: some that offload might be faster or smaller.
  bool offload_left_out = false;
  std::optional<PlannedRun> nearest_miss;  // when nothing fits: the plan that misses by least
  // Combinations of the parts that the stack leaves open, best first. All other members belong to
  // the first combination.
  std::vector<TriedParts> tried;
};

}  // namespace tpsim

// Result of a search.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_words.h"
#include "core/plan/report.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// One combination of the software options that the search tries (StackChoices::parts), with the
// step time of its best plan. `step` is empty if no plan fits.
struct TriedParts {
  PartValues parts;
  std::optional<Seconds> step;
};

// Use of an offloaded optimizer by a search. Until measured runs confirm its price, a plan with
// offload is found only if no plan fits without, or if its whole interval is better than the best
// plan without.
enum class OffloadSearch : std::uint8_t {
  // Offload was asked for or excluded, or no plan that could be better exceeds memory.
  kAsAsked,
  kLeftOut,  // not searched since a plan fits: the objective memory, or a Pareto front
  kSurely,   // searched for plans whose whole interval is better
  kNeeded,   // no plan fits without offload
};
template <>
inline constexpr auto kEnumNames<OffloadSearch> =
    std::to_array<std::string_view>({"as_asked", "left_out", "if_surely_better", "needed"});

inline constexpr double kNoCap = std::numeric_limits<double>::max();  // no limit of a score

struct SearchResult {
  std::int64_t considered = 0;
  // Plans that fit in memory and survived pruning.
  std::int64_t feasible = 0;
  // Plans that were skipped before their memory was computed, because even their best case is
  // worse than the plans found. Also counted in `pruned`.
  std::int64_t not_as_good = 0;
  std::int64_t simulated = 0;  // plans simulated event by event
  // A search that ended at SearchSpace::until has the share of the families that it visited, 0 if
  // it searched only a likely part of the space, and the number of plans that it did not compare.
  double visited = 1;
  std::int64_t not_compared = 0;
  std::map<std::string, std::int64_t> pruned;  // reason -> number of combinations
  Seconds elapsed;  // until the answer, with all searches for it; set by plan_answer()
  std::vector<PlannedRun> plans;  // best first, simulated event by event
  // Value of the objective for each plan: seconds, bytes or GPU-seconds per step. Empty for a
  // Pareto front.
  std::vector<double> scores;
  OffloadSearch offload = OffloadSearch::kAsAsked;
  std::optional<PlannedRun> nearest_miss;  // plan with the lowest peak if no plan fits
  // The combinations of software options that the search tried (StackChoices::parts), best first.
  // Counts are those of all combinations; other members describe the first one.
  std::vector<TriedParts> tried;

  bool is_complete() const { return visited == 1 && not_compared == 0; }
};

}  // namespace tpsim

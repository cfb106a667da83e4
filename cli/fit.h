// What does not fit, by how much, and what would.
#pragma once

#include <string>
#include <vector>

#include "core/report.h"
#include "core/result.h"
#include "core/scenario.h"
#include "plans/search.h"

namespace tpsim::cli {

// A plan more likely than this to run out of memory is refused.
inline constexpr double kRefusedChance = 0.5;

const StageMemory& fullest_stage(const Prediction& predicted);

// "needs 91.2 GiB on stage 0, 17.4 GiB more than the 73.8 of 79.3 GiB that plans may use, 61 % of
// it optimizer"
std::string shortage_text(const Prediction& predicted, Bytes limit);

// A constraint that the user put on a search, by its option, and the space without it.
struct Relaxation {
  std::string option;
  SearchSpace space;
};
// What could be given up for a plan to be found, the least first: the table of settings goes from
// what shapes a layout to details.
std::vector<Relaxation> relaxations(const SearchSpace& space);

// A refused plan: the reason, the margin, and a plan that does fit.
Error does_not_fit(const Scenario& scenario, const PlannedRun& run);

// A search that found no plan: the nearest miss and the smallest change that mends it, or, where
// nothing is even legal, the nearest GPU counts for which something is.
Error nothing_fits(const Scenario& scenario, const SearchSpace& space, const SearchResult& found);

}  // namespace tpsim::cli

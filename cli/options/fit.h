// What does not fit, by how much, and what would.
#pragma once

#include <string>
#include <vector>

#include "cli/options/options.h"
#include "core/base/result.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim::cli {

const StageMemory& fullest_stage(const Prediction& predicted);

// "needs 91.2 GiB on stage 0, 17.4 GiB more than the 73.8 of 79.3 GiB that plans may use, 61 % of
// it optimizer"
std::string shortage_text(const Prediction& predicted, Bytes limit);

// Why the plan does not fit, behind "it": the shortage of the fullest stage or of the host, or the
// risk where that is above `most_chance` only.
std::string misfit_text(const Prediction& predicted, double most_chance);

// A constraint that the user put on a search, by its option, and the space without it.
struct Relaxation {
  std::string option;
  SearchSpace space;
};
// What could be given up for a plan to be found, the least first: the table of settings goes from
// what shapes a layout to details.
std::vector<Relaxation> relaxations(const SearchSpace& space);

// An error, with exit code 3, for a plan that does not fit: the reason, the margin, and a plan that
// does fit. None with --allow-oom. --max-oom says at which risk a plan counts as one that does not.
Status check_fit(const Arguments& arguments, const Scenario& scenario, const PlannedRun& run);

// A search that found no plan: the nearest miss and the smallest change that mends it, or, where
// nothing is even legal, the nearest GPU counts for which something is.
Error nothing_fits(const Scenario& scenario, const SearchSpace& space, const SearchResult& found);

}  // namespace tpsim::cli

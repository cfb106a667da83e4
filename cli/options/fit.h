// Errors for plans that do not fit in memory, with the shortage and a remedy.
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

// Returns "needs 91.2 GiB on stage 0, 17.4 GiB more than the 73.8 of 79.3 GiB that plans may use,
// 61 % of it optimizer".
std::string shortage_text(const Prediction& predicted, Bytes limit);

// Returns the reason why the plan does not fit, to follow "it": the shortage of the fullest stage
// or of the host. Or the risk, if only the risk exceeds `most_chance`.
std::string misfit_text(const Prediction& predicted, double most_chance);

// A constraint of a search, by its option, and the space without it.
struct Relaxation {
  std::string option;
  SearchSpace space;
};
// Returns constraints that could be dropped. The order is that of the table of settings, from
// layout to details.
std::vector<Relaxation> relaxations(const SearchSpace& space);

// Returns an error (exit code 3) for a plan that does not fit: reason, shortage, and a plan that
// fits. No error with --allow-oom. --max-oom sets the accepted risk.
Status check_fit(const Arguments& arguments, const Scenario& scenario, const PlannedRun& run);
// For commands that print plans that do not fit too: an error only if --max-oom is given and the
// risk is larger. `name`: of the plan, for the error.
Status check_stated_risk(const Arguments& arguments, const std::string& name,
                         const Prediction& predicted);

// Returns the error for a search without plans: the nearest miss and the smallest remedy. If no
// layout is legal, the nearest GPU counts with a legal layout.
Error nothing_fits(const Scenario& scenario, const SearchSpace& space, const SearchResult& found);

}  // namespace tpsim::cli

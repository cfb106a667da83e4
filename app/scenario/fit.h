// Error messages for plans that do not fit in memory. They state the shortage and suggest a remedy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/scenario/named_scenario.h"
#include "core/base/result.h"
#include "core/plan/report.h"
#include "plans/search/search.h"

namespace tpsim::app {

const StageMemory& fullest_stage(const Prediction& predicted);

// Returns "needs 91.2 GiB on stage 0, 17.4 GiB more than the limit of 73.8 GiB (the GPU has 79.3
// GiB); 61 % of the peak is optimizer".
std::string shortage_text(const Prediction& predicted, Bytes limit);

// Returns the reason why the plan does not fit, as a clause after "it". The reason is the shortage
// on the fullest stage or in host memory, or else an out-of-memory probability above `most_chance`.
std::string misfit_text(const Prediction& predicted, double most_chance);

// A constraint that an option puts on a search, and the search space without it.
struct Relaxation {
  std::string option;
  SearchSpace space;
};
// Returns the constraints of a search that could be dropped, in the order of the table of settings:
// layout first.
std::vector<Relaxation> relaxations(const SearchSpace& space);

// Accepted risk of running out of memory.
struct AcceptedRisk {
  std::optional<double> max_oom = {};  // largest accepted probability; absent: kRefusedChance
  bool allow_oom = false;              // accept every plan
};

// Returns kDoesNotFit (exit code 3) for a plan that does not fit: the reason, the shortage, and a
// plan that fits.
Status check_fit(const AcceptedRisk& accepted, const NamedScenario& named, const PlannedRun& run);
// For commands that also print plans that do not fit: returns an error only if a probability is
// stated and the plan's is larger. `name` identifies the plan in the error.
Status check_stated_risk(const AcceptedRisk& accepted, const std::string& name,
                         const Prediction& predicted);

// Returns the error for a search that found no plan. States the plan that is closest to fitting and
// the smallest remedy, or if no layout is legal, the nearest usable numbers of GPUs.
Error nothing_fits(const NamedScenario& named, const SearchSpace& space, const SearchResult& found);

}  // namespace tpsim::app

// Software options that a search did not vary and that make its best plan faster.
#pragma once

#include "app/scenario/named_scenario.h"
#include "core/plan/report.h"
#include "plans/search/search_space.h"

namespace tpsim::app {

// Returns single parts with the step time of `best`, fastest first. `oom_risk`: of the search. Each
// part keeps the results of training, can be written to files of the launcher, saves at least 1 %
// of the step, and fits in memory. Parts that the request states or searches are absent.
std::vector<TriedParts> untried_parts(const NamedScenario& named, const PlannedRun& best,
                                      double oom_risk);

// Returns parts that make a likely plan of the space faster, the largest gain first, each as
// untried_parts() allows. Empty for saved plans, and if no likely plan fits. A search takes these
// values instead of those of the stack's file.
PartValues faster_parts(NamedScenario named, const SearchSpace& space);

// Returns the scenario of `named` with faster_parts() as values to search.
Scenario with_faster_parts(const NamedScenario& named, const SearchSpace& space);

}  // namespace tpsim::app

// Software options that a search did not vary and that make its best plan faster.
#pragma once

#include "app/scenario/named_scenario.h"
#include "core/plan/report.h"

namespace tpsim::app {

// Returns single parts with the step time of `best`, fastest first. `oom_risk`: of the search. Each
// part keeps the results of training, can be written to files of the launcher, saves at least 1 %
// of the step, and fits in memory. Parts that the request states or searches are absent.
std::vector<TriedParts> untried_parts(const NamedScenario& named, const PlannedRun& best,
                                      double oom_risk);

}  // namespace tpsim::app

// What a search for cost or energy has least of, plan by plan, in money and kWh.
#pragma once

#include "cli/inputs.h"
#include "cli/plan_view.h"
#include "plans/search.h"

namespace tpsim::cli {

// For the ranking of what was found; no columns for time and memory, whose own are there. A cluster
// whose price or power nobody states (data/campaigns) has GPU-hours alone.
UsedColumns used_columns(const NamedScenario& named, const SearchSpace& space,
                         const SearchResult& found);

}  // namespace tpsim::cli

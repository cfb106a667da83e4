// Estimates the time and memory of a search before it starts.
#pragma once

#include "core/base/result.h"
#include "core/base/work_limits.h"
#include "core/scenario/scenario.h"
#include "plans/search/search_space.h"

namespace tpsim {

struct SearchWork {
  double plans = 0;  // upper bound of enumerated plans
  WorkEstimate estimate;
};

// Estimates the work of a search from an upper bound of its plans. Counts layouts without tracing
// any layer. The estimate includes the simulation of the `top` best plans and of a guessed number
// of others.
SearchWork work_of(const Scenario& scenario, const SearchSpace& space, int top);

// Error if the cluster does not have the GPUs, or if the batch is impossible. kDoesNotFit if the
// search, including the simulation of `top` plans, would exceed the scenario's limits.
Status check_space(const Scenario& scenario, const SearchSpace& space, int top);

// Maximum number of plans kept for ranking (about 1 GiB). A search with more fitting plans fails.
inline constexpr std::int64_t kMostCandidates = 4'000'000;

}  // namespace tpsim

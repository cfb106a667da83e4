// Estimates the time and memory of a search before it starts.
#pragma once

#include "core/base/result.h"
#include "core/base/work_limits.h"
#include "core/scenario/scenario.h"
#include "plans/search/search_space.h"

namespace tpsim {

struct SearchWork {
  double plans = 0;  // upper bound of considered plans
  WorkEstimate estimate;
};

// Counts layouts of the space without cutting a model or tracing a layer. Returns an upper bound of
// the plans, from which time and memory follow. The number of simulated plans beyond the `top` best
// is a guess.
SearchWork work_of(const Scenario& scenario, const SearchSpace& space, int top);

// Error for GPU counts that the cluster lacks and for an impossible batch. Error kDoesNotFit if the
// work exceeds the scenario's limits, including the simulation of `top` plans.
Status check_space(const Scenario& scenario, const SearchSpace& space, int top);

// Maximum number of plans kept for ranking (about 1 GiB). A search that exceeds it fails.
inline constexpr std::int64_t kMostCandidates = 4'000'000;

}  // namespace tpsim

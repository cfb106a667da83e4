// What a search takes, before it starts.
#pragma once

#include "core/base/result.h"
#include "core/base/work_limits.h"
#include "core/scenario/scenario.h"
#include "plans/search/search_space.h"

namespace tpsim {

struct SearchWork {
  double plans = 0;  // that will be considered, at most
  WorkEstimate estimate;
};

// Counted from the layouts that the space allows, without cutting a model or tracing a layer: an
// upper bound of the plans, and by it of time and of the memory for cuts. How many more than the
// `top` best are simulated event by event is a guess.
SearchWork work_of(const Scenario& scenario, const SearchSpace& space, int top);

// Fails on GPU counts that the cluster cannot give, an impossible batch, or more work than the
// scenario's limits allow (kDoesNotFit), also for the `top` plans that are simulated.
Status check_space(const Scenario& scenario, const SearchSpace& space, int top);

// Plans that fit and are kept for ranking: more end the search (about 1 GiB).
inline constexpr std::int64_t kMostCandidates = 4'000'000;

}  // namespace tpsim

// Searches all legal plans of a model on a number of GPUs for the best ones.
#pragma once

#include <functional>

#include "core/base/result.h"
#include "core/scenario/scenario.h"
#include "plans/search/search_result.h"
#include "plans/search/search_space.h"

namespace tpsim {

// Returns the scenario with the part values that the search chose for its plans.
Scenario with_found_parts(Scenario scenario, const SearchResult& found);

// Returns the `top` best plans, or the best plans of the `top` best layouts (SearchSpace::group).
// If plans differ only in the number of recomputed blocks per chunk, only the best of them is
// returned. `progress` receives the completed share in [0,1] and may be empty. If no plan fits,
// `plans` is empty and nearest_miss is set. Error if the GPU count exceeds the cluster, if every
// plan's step is longer than the limit of sim/step/predict.h, or if the stack's open parts have
// more than 64 combinations. The result does not depend on the number of threads.
Result<SearchResult> search(const Scenario& scenario, const SearchSpace& space, int top,
                            const std::function<void(double)>& progress, int threads = 1);

// Returns the Pareto front of step time and memory as `plans`, in ascending order of step time.
// GPU-seconds are a third criterion if GPU counts vary. Errors and guarantees are those of
// search().
Result<SearchResult> pareto_front(const Scenario& scenario, const SearchSpace& space,
                                  const std::function<void(double)>& progress, int threads = 1);

}  // namespace tpsim

// Searches all legal plans of a model on a number of GPUs for the best ones.
#pragma once

#include <functional>

#include "core/base/result.h"
#include "core/scenario/scenario.h"
#include "plans/search/search_result.h"
#include "plans/search/search_space.h"

namespace tpsim {

// Returns the scenario with the parts that the search selected, with which its plans are predicted.
Scenario with_found_parts(Scenario scenario, const SearchResult& found);

// Returns the `top` best plans. Of plans that differ only in the number of recomputed blocks per
// chunk, only the best is returned. `progress` gets the completed share in [0,1]; it may be empty.
// If no plan fits, plans is empty and nearest_miss is set. Error if the GPU count exceeds the
// cluster, if every plan's step is too long to count (sim/step/predict.h), or if the stack leaves
// parts open in more than 64 combinations. The result does not depend on the number of threads.
Result<SearchResult> search(const Scenario& scenario, const SearchSpace& space, int top,
                            const std::function<void(double)>& progress, int threads = 1);

// Returns the Pareto front of step time and memory (and GPU-seconds if GPU counts vary), in order
// of step time, as `plans`. Guarantees are those of search().
Result<SearchResult> pareto_front(const Scenario& scenario, const SearchSpace& space,
                                  const std::function<void(double)>& progress, int threads = 1);

}  // namespace tpsim

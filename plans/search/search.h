// All legal plans of a model on a number of GPUs, and the best of them.
#pragma once

#include <functional>

#include "core/base/result.h"
#include "core/scenario/scenario.h"
#include "plans/search/search_result.h"
#include "plans/search/search_space.h"

namespace tpsim {

// The scenario with the parts that the search chose: what its plans are predicted with.
Scenario with_found_parts(Scenario scenario, const SearchResult& found);

// `top` best plans; of those that differ only in how many blocks of every chunk they recompute, the
// best one stands for all. `progress` hears the done share in [0,1]; it may be empty. Fails on a
// GPU count beyond the cluster; nothing fitting is no failure: plans is empty and nearest_miss is
// set. Fails too where no plan's step is short enough to be counted (sim/step/predict.h), and where
// the stack leaves parts open in more than 64 combinations. The answer does not depend on the
// number of threads.
Result<SearchResult> search(const Scenario& scenario, const SearchSpace& space, int top,
                            const std::function<void(double)>& progress, int threads = 1);

// The plans that no other beats in step time and memory at once (and in GPU-seconds, where GPU
// counts vary), by rising step time, as `plans`. The same guarantees.
Result<SearchResult> pareto_front(const Scenario& scenario, const SearchSpace& space,
                                  const std::function<void(double)>& progress, int threads = 1);

}  // namespace tpsim

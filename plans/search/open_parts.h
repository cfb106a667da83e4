// Searches over the values of software parts that a stack does not fix.
#pragma once

#include <functional>

#include "core/base/result.h"
#include "core/scenario/scenario.h"
#include "plans/search/search_result.h"

namespace tpsim {

using SearchOfScenario =
    std::function<Result<SearchResult>(const Scenario&, const std::function<void(double)>&)>;

// Adds the counts of search `from` to those of `to`.
void add_counts(const SearchResult& from, SearchResult& to);

// Runs `search` with every combination of values of the stack's open parts (StackChoices::parts).
// Returns the result of the combination with the best first plan, and all combinations in `tried`.
// Error for more than 64 combinations.
Result<SearchResult> over_open_parts(const Scenario& scenario,
                                     const std::function<void(double)>& progress,
                                     const SearchOfScenario& search);

}  // namespace tpsim

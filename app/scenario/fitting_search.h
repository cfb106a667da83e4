// A search that tries other software if no plan fits in memory.
#pragma once

#include <cstdint>
#include <functional>

#include "app/scenario/named_scenario.h"
#include "app/scenario/plan_request.h"
#include "core/base/result.h"
#include "plans/search/search_result.h"

namespace tpsim::app {

using SearchOf = std::function<Result<SearchResult>(const Scenario&, const Progress&)>;

// Searches with the software of `named` and with faster_parts(). If no plan fits in memory,
// searches again with software parts that save memory and that the request leaves open; then, if
// the stack is a default, with the other usual stacks. Returns the first search that has plans, of
// several stacks the one with the best plan, else the first search. Stores the software in `named`,
// as adopt_parts() does, and NamedScenario::remedy. The last call of `search` is that of the
// result, if it has plans. `progress` receives the completed share of all searches together; it may
// be empty. `space` is that of the searches.
Result<SearchResult> search_until_fit(NamedScenario& named, const SearchSpace& space,
                                      const Progress& progress, const SearchOf& search);

}  // namespace tpsim::app

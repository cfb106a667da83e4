// Every combination of plan settings for a model and a cluster, legal or counted with its reason.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/plan.h"
#include "core/scenario.h"
#include "plans/search.h"

namespace tpsim {

struct EnumerationCount {
  std::int64_t considered = 0;
  std::map<std::string, std::int64_t> pruned;  // reason -> combinations
};

// Calls `visit` with every legal plan. Combinations that cannot run are counted by reason; a layout
// that rules out all its combinations counts all of them. Deterministic order.
EnumerationCount enumerate_plans(const Scenario& scenario, const SearchSpace& space,
                                 const std::function<void(const Plan&)>& visit);

// Divisors of n in ascending order.
std::vector<std::int64_t> divisors(std::int64_t n);

}  // namespace tpsim

// Which values each setting takes in a search space: what was asked for, or all that can make
// sense.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plans/search/search_space.h"

namespace tpsim {

template <class T>
bool contains(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// Whether the search starts from a plan that has this value.
bool is_around(const SearchSpace& space, const SettingValue& value);
// Whether a setting may have this value: asked for where values were asked for, not excluded, and
// one that the software has.
bool is_allowed(const Scenario& scenario, const SearchSpace& space, const SettingValue& value);
// The values that a search tries of a setting whose values do not follow from the layout: what was
// asked for, else what the setting's row says and the plan has that the search starts from, without
// what is excluded. Where all of that is
// excluded, whatever else there is. Some may be none that the software has.
std::vector<std::int64_t> tried_values(const SearchSpace& space, Setting setting);

// Unasked, a sequence is shared only as long as every rank keeps 4096 positions of it.
std::vector<std::int64_t> context_degrees(const Scenario& scenario, const SearchSpace& space,
                                          std::int64_t ranks);
// How experts are cut where attention is by tp: unasked as attention (0), and not at all.
std::vector<std::int64_t> expert_tensor_degrees(const Scenario& scenario, const SearchSpace& space,
                                                std::int64_t tp);
// Degrees that divide both the experts and a stage's ranks by what cuts an expert.
std::vector<std::int64_t> expert_degrees(const Scenario& scenario, const SearchSpace& space,
                                         std::int64_t ranks);
// Cost and energy may prefer fewer GPUs: every number of whole nodes up to the given one.
std::vector<std::int64_t> gpu_counts_of(const ClusterSpec& cluster, const SearchSpace& space);
std::int64_t most_virtual_stages(const ModelSpec& model, std::int64_t pp);

// Divisors of n in ascending order.
std::vector<std::int64_t> divisors(std::int64_t n);

}  // namespace tpsim

// Values of each setting in a search space: the requested ones, or all reasonable ones.
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

// Whether the plan from which the search starts has this value.
bool is_around(const SearchSpace& space, const SettingValue& value);
// Whether a setting may have this value: it is requested or the setting is free, it is not
// excluded, and the software supports it.
bool is_allowed(const Scenario& scenario, const SearchSpace& space, const SettingValue& value);
// Returns the values to try of a setting that is independent of the layout. These are the requested
// values, or the default values of its row and the value of the starting plan, without excluded
// values. If all of them are excluded, returns the remaining values. The software may not support
// all of them.
std::vector<std::int64_t> tried_values(const SearchSpace& space, Setting setting);

// Context-parallel degrees. If not requested, every rank keeps at least 4096 positions.
std::vector<std::int64_t> context_degrees(const Scenario& scenario, const SearchSpace& space,
                                          std::int64_t ranks);
// Tensor-parallel degrees of experts (ETP) if attention uses tp. Default: as attention (0), and 1.
std::vector<std::int64_t> expert_tensor_degrees(const Scenario& scenario, const SearchSpace& space,
                                                std::int64_t tp);
// Expert-parallel degrees: divisors of the experts and of (ranks of a stage / ETP).
std::vector<std::int64_t> expert_degrees(const Scenario& scenario, const SearchSpace& space,
                                         std::int64_t ranks);
// For cost and energy fewer GPUs may be better: all numbers of whole nodes up to the requested
// count.
std::vector<std::int64_t> gpu_counts_of(const ClusterSpec& cluster, const SearchSpace& space);
std::int64_t most_virtual_stages(const ModelSpec& model, std::int64_t pp);

// Divisors of n in ascending order.
std::vector<std::int64_t> divisors(std::int64_t n);

}  // namespace tpsim

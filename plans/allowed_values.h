// Which values each setting takes in a search space: what was asked for, or all that can make
// sense.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "plans/search.h"

namespace tpsim {

template <class T>
void fill_if_empty(std::vector<T>& asked, std::vector<T> all) {
  if (asked.empty()) asked = std::move(all);
}

template <class T>
bool contains(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

template <class T>
void drop_excluded(const SearchSpace& space, Setting setting, std::vector<T>& values) {
  std::erase_if(values, [&](T value) {
    return contains(space.excluded, SettingValue{setting, static_cast<std::int64_t>(value)});
  });
}

// Whether a setting may have this value: asked for where values were asked for, and not excluded.
bool is_allowed(const SearchSpace& space, const std::vector<std::int64_t>& asked,
                const SettingValue& value);

// Unasked, a sequence is shared only as long as every rank keeps 4096 positions of it.
std::vector<std::int64_t> context_degrees(const ModelSpec& model, const SearchSpace& space,
                                          std::int64_t ranks);
// Degrees that divide both the replicas and the experts.
std::vector<std::int64_t> expert_degrees(const ModelSpec& model, const SearchSpace& space,
                                         std::int64_t replicas);
// Cost and energy may prefer fewer GPUs: every number of whole nodes up to the given one.
std::vector<std::int64_t> gpu_counts_of(const ClusterSpec& cluster, const SearchSpace& space);
std::int64_t most_virtual_stages(const ModelSpec& model, std::int64_t pp);

}  // namespace tpsim

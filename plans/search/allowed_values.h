// Values that a search tries for each setting: the requested ones, or a default list.
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

// Returns whether space.around, the plan from which the search starts, has this value.
bool is_around(const SearchSpace& space, const SettingValue& value);
// Returns whether a plan of the space may have this value. The value must be requested, or the
// setting must have no requested values. Excluded and unsupported values are not allowed.
bool is_allowed(const Scenario& scenario, const SearchSpace& space, const SettingValue& value);
// Returns the values to try for a setting that does not depend on the layout: the requested values,
// or else SettingRow::tried, recompute by op if `choices` lists it, and the value of the starting
// plan. Excluded values are removed. If this removes all default values, returns every other value
// of the setting. Does not check whether the software supports a value.
std::vector<std::int64_t> tried_values(const StackChoices& choices, const SearchSpace& space,
                                       Setting setting);
// Parts of a space that are searched in a fraction of the time and usually have plans nearly as
// good: flash attention, ZeRO 0 and 1, even stage cuts, and micro-batches of 1 or up to 4. The
// first part has small powers of two as degrees.
enum class LikelyPart : std::uint8_t { kFewLayouts, kOneSequence, kFourSequences };
SearchSpace likely_part(const Scenario& scenario, SearchSpace space, LikelyPart part);

// Returns context-parallel degrees. If cp is not requested, every rank keeps at least 4096
// positions.
std::vector<std::int64_t> context_degrees(const Scenario& scenario, const SearchSpace& space,
                                          std::int64_t ranks);
// Returns the expert tensor-parallel degrees (ETP) to try in layouts with this tp. Default: 0 (the
// same as tp), and 1.
std::vector<std::int64_t> expert_tensor_degrees(const Scenario& scenario, const SearchSpace& space,
                                                std::int64_t tp);
// Returns expert-parallel degrees: common divisors of the expert count and `ranks` (ranks of a
// stage / ETP).
std::vector<std::int64_t> expert_degrees(const Scenario& scenario, const SearchSpace& space,
                                         std::int64_t ranks);
// Returns the numbers of GPUs to try. If the objective is cost or energy, fewer GPUs may be better,
// so all numbers of whole nodes up to the requested count are tried.
std::vector<std::int64_t> gpu_counts_of(const ClusterSpec& cluster, const SearchSpace& space);
std::int64_t most_virtual_stages(const ModelSpec& model, std::int64_t pp);

// Returns the divisors of n in ascending order.
std::vector<std::int64_t> divisors(std::int64_t n);

}  // namespace tpsim

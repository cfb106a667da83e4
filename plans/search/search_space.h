// The space of a search: settings, stages, software parts, and the objective.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/plan_settings.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Cost and energy are per token, and may be lowest on fewer GPUs than available. Cost is
// proportional to the GPU-seconds of a step. Energy distinguishes working and waiting GPUs: see
// kWaitingDraw.
enum class Objective : std::uint8_t { kTime, kMemory, kCost, kEnergy };
template <>
inline constexpr auto kEnumNames<Objective> = std::to_array<std::string_view>({"time", "memory",
                                                                               "cost", "energy"});
// Power of a waiting GPU relative to a working one. An estimate: it polls in a collective at low
// utilization, well above the idle power of 50 to 70 W of an A100 (400 W) or H100 (700 W).
inline constexpr double kWaitingDraw = 0.3;

// The space to search. A setting with an empty list is free: every legal value is tried. For some
// settings only the values of their row in core/plan/plan_settings.h are tried. For example,
// offload is tried only if memory rules plans out.
//
// Stages are cut evenly, with embedding and head counted as one block each or not at all. Uneven
// cuts are tried too: the first and last chunk of the model may each have up to `uneven_ends` fewer
// blocks. The other chunks share these blocks evenly.
struct SearchSpace {
  std::int64_t gpus = 1;
  std::int64_t global_batch = 1;
  SettingLists asked;                  // ascending, each value once
  std::vector<SettingValue> excluded;  // plans with any of these values are excluded
  // A starting plan: its values and its stage cut are tried too if the settings are free. The best
  // plan is then at least as good as the starting plan, if that one is legal and fits.
  std::optional<Plan> around;
  std::int64_t uneven_ends = 2;
  Objective objective = Objective::kTime;
  Bytes memory_limit;      // zero: the device's capacity
  double oom_risk = 0.05;  // maximum probability of running out of memory
};

// Returns the space with one setting fixed to a value.
SearchSpace with_setting(SearchSpace space, const SettingValue& value);
// Returns the space around a saved plan: the same number of GPUs, and settings with
// SettingRow::fixed_by_plan fixed to the plan's values. All other settings are free, and the plan's
// values are tried too.
SearchSpace space_around(const Plan& plan);
// Whether a search that lacks memory tries plans with the optimizer offloaded to the host.
bool may_offload(const Scenario& scenario, const SearchSpace& space);

// Returns the memory that plans may use on a device so that the probability of running out of
// memory is at most oom_risk. (At a peak equal to the capacity it would be one half.)
Bytes memory_limit(const Scenario& scenario, const SearchSpace& space);
// Returns the device memory with which a plan of this peak fits.
Bytes memory_for(const Scenario& scenario, const SearchSpace& space, Bytes peak);

}  // namespace tpsim

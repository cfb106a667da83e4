// The space of a search: requested values of each setting, stage cuts, objective and memory limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/plan_settings.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Cost and energy are per token and may be lowest on fewer GPUs than available. Cost is
// proportional to the GPU-seconds of a step. Energy weights the time in which GPUs wait with
// kWaitingDraw.
enum class Objective : std::uint8_t { kTime, kMemory, kCost, kEnergy };
template <>
inline constexpr auto kEnumNames<Objective> = std::to_array<std::string_view>({"time", "memory",
                                                                               "cost", "energy"});
// The entries of a ranking: every plan, or the best plan of each layout. Plans with equal parallel
// degrees are variants of one layout.
enum class Grouping : std::uint8_t { kNone, kLayout };
template <>
inline constexpr auto kEnumNames<Grouping> = std::to_array<std::string_view>({"none", "layout"});
// Power of a waiting GPU relative to a computing one. An estimate: a waiting GPU polls in a
// collective at low utilization, well above the idle power of 50 to 70 W of an A100 (400 W) or H100
// (700 W).
inline constexpr double kWaitingDraw = 0.3;

// Restrictions of a search besides the number of GPUs and the batch.
struct SearchLimits {
  // Requested values of each setting: ascending, each value once.
  SettingLists asked;
  std::vector<SettingValue> excluded;  // plans with any of these values are excluded
  std::int64_t uneven_ends = 2;
  Bytes memory_limit;      // zero: the device's capacity
  double oom_risk = 0.05;  // maximum probability of running out of memory

  friend bool operator==(const SearchLimits&, const SearchLimits&) = default;
};

// The space to search. A setting with an empty list in `asked` is free. Every legal value of a free
// setting is tried, or only the values of SettingRow::tried (core/plan/plan_settings.h) if there
// are any. Offload is tried only if plans exceed memory.
//
// Stage cuts are even, with embedding and head counted as one block each or not counted. Uneven
// cuts are tried too: the first and the last chunk of the model may each have up to `uneven_ends`
// fewer blocks than an even share. The other chunks share these blocks evenly.
struct SearchSpace : SearchLimits {
  std::int64_t gpus = 1;
  std::int64_t global_batch = 1;
  // A starting plan. Its stage cut is tried too, and its values of free settings. If the starting
  // plan is legal and fits, the best plan is at least as good.
  std::optional<Plan> around;
  Objective objective = Objective::kTime;
  Grouping group = Grouping::kNone;
  bool wants_nearest_miss = true;  // compute SearchResult::nearest_miss if no plan fits
  // The search ends at this time even if it is not complete. Absent: only when it is complete.
  std::optional<std::chrono::steady_clock::time_point> until;

  bool is_late() const { return until && std::chrono::steady_clock::now() >= *until; }
};

// Returns the space with one setting fixed to a value. The value is no longer excluded.
SearchSpace with_setting(SearchSpace space, const SettingValue& value);
// Returns the space that starts from a plan: the same number of GPUs and batch. Settings with
// SettingRow::fixed_by_plan have the plan's values. All other settings are free; for these the
// plan's values are tried too.
SearchSpace space_around(const Plan& plan);
// Returns whether a search in which plans exceed memory also tries an offloaded optimizer.
bool may_offload(const Scenario& scenario, const SearchSpace& space);

// Returns the largest predicted peak per device for which the probability of running out of memory
// is at most oom_risk. For a peak equal to the capacity, this probability would be one half.
Bytes memory_limit(const Scenario& scenario, const SearchSpace& space);
// Returns the memory that a device needs so that a plan of this peak fits.
Bytes memory_for(const Scenario& scenario, const SearchSpace& space, Bytes peak);

}  // namespace tpsim

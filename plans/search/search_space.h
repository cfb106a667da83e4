// What a search may choose from: settings, stages, parts of the software, and the objective.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/plan_settings.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Cost and energy are those of a token, and may be least on fewer GPUs than there are. Cost follows
// the GPU-seconds of a step, since a GPU's hour has one price. Energy tells working GPUs from
// waiting ones: see kWaitingDraw.
enum class Objective : std::uint8_t { kTime, kMemory, kCost, kEnergy };
template <>
inline constexpr auto kEnumNames<Objective> = std::to_array<std::string_view>({"time", "memory",
                                                                               "cost", "energy"});
// What a GPU draws that waits for others, over one that works. Judgement: it spins in a collective
// at low use of its units, well above the 50 to 70 W of an idle A100 or H100 of 400 and 700 W.
inline constexpr double kWaitingDraw = 0.3;

// What to search. A setting with an empty list is free: every legal value is tried, of some what
// their row in core/plan/plan_settings.h says (no offload, say, unless memory rules plans out).
//
// Stages are cut evenly, with embedding and head counted as a block each or not; and unevenly: the
// first and the last chunk of the model may each hold up to `uneven_ends` blocks less than an even
// share, which the chunks between them take over evenly.
struct SearchSpace {
  std::int64_t gpus = 1;
  std::int64_t global_batch = 1;
  SettingLists asked;                  // ascending, each value once
  std::vector<SettingValue> excluded;  // plans with any of these are left out
  // Its values and its cut into stages are tried too, where the settings that have them are free:
  // the best plan is then no worse than this one, where it is legal and fits.
  std::optional<Plan> around;
  std::int64_t uneven_ends = 2;
  Objective objective = Objective::kTime;
  Bytes memory_limit;      // zero: the device's capacity
  double oom_risk = 0.05;  // what is likelier than this to run out of memory does not fit
};

// The space with one setting held to a value.
SearchSpace with_setting(SearchSpace space, const SettingValue& value);
// The space of a search that starts from a saved plan: as many GPUs, every setting that such a plan
// fixes (SettingRow::fixed_by_plan) at its value, all others free and tried at the plan's value
// too.
SearchSpace space_around(const Plan& plan);
// Whether a search for which memory is short tries plans with the optimizer in the hosts' memory.
bool may_offload(const Scenario& scenario, const SearchSpace& space);

// What plans of the space may use of a device, so that they run out of memory no likelier than the
// space allows (at a peak of its whole capacity every second run would).
Bytes memory_limit(const Scenario& scenario, const SearchSpace& space);
// The memory that a device must have for a plan of this peak to fit.
Bytes memory_for(const Scenario& scenario, const SearchSpace& space, Bytes peak);

}  // namespace tpsim

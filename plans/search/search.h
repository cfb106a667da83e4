// All legal plans of a model on a number of GPUs, and the best of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/plan/plan_settings.h"
#include "core/plan/report.h"
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

// One combination of the parts that a stack leaves open (StackChoices::parts), and the step of its
// best plan; none where nothing fits.
struct TriedParts {
  PartValues parts;
  std::optional<Seconds> step;
};

struct SearchResult {
  std::int64_t considered = 0;
  // Fit, and were not ruled out before as less good than the plans.
  std::int64_t feasible = 0;
  // Ruled out together or one by one as less good than the plans, before it was known whether they
  // fit; counted in `pruned` too. None where memory is the objective, nor of a front.
  std::int64_t not_as_good = 0;
  std::int64_t simulated = 0;                  // event by event: those that could be among the best
  std::map<std::string, std::int64_t> pruned;  // why a combination cannot run -> how many
  Seconds elapsed;
  std::vector<PlannedRun> plans;  // best first, simulated event-exactly
  // Of each what the objective counts in a step: seconds, bytes, or seconds of a GPU at work. Empty
  // for a front.
  std::vector<double> scores;
  // Nobody asked to offload the optimizer, memory is the objective or the answer a front, and plans
  // fit without it: some that offload might be faster or smaller.
  bool offload_left_out = false;
  std::optional<PlannedRun> nearest_miss;  // when nothing fits: the plan that misses by least
  // Combinations of the parts that the stack leaves open, best first. All other members belong to
  // the first combination.
  std::vector<TriedParts> tried;
};

// The scenario with the parts that the search chose: what its plans are predicted with.
Scenario with_found_parts(Scenario scenario, const SearchResult& found);

// `top` best plans; of those that differ only in how many blocks of every chunk they recompute, the
// best one stands for all. `progress` hears the done share in [0,1]; it may be empty. Fails on a
// GPU count beyond the cluster; nothing fitting is no failure: plans is empty and nearest_miss is
// set. Fails too where no plan's step is short enough to be counted (sim/step/predict.h), and where
// the stack leaves parts open in more than 64 combinations. The answer does not depend on the
// number of threads.
Result<SearchResult> search(const Scenario& scenario, const SearchSpace& space, int top,
                            const std::function<void(double)>& progress, int threads = 1);

// The plans that no other beats in step time and memory at once (and in GPU-seconds, where GPU
// counts vary), by rising step time, as `plans`. The same guarantees.
Result<SearchResult> pareto_front(const Scenario& scenario, const SearchSpace& space,
                                  const std::function<void(double)>& progress, int threads = 1);

// The space with one setting held to a value.
SearchSpace with_setting(SearchSpace space, const SettingValue& value);
// The space of a search that starts from a saved plan: as many GPUs, every setting that such a plan
// fixes (SettingRow::fixed_by_plan) at its value, all others free and tried at the plan's value
// too.
SearchSpace space_around(const Plan& plan);
// Fails on GPU counts that the cluster cannot give, an impossible batch, or more work than the
// scenario's limits allow (kDoesNotFit), also for the `top` plans that are simulated.
Status check_space(const Scenario& scenario, const SearchSpace& space, int top);

// Whether a search for which memory is short tries plans with the optimizer in the hosts' memory.
bool may_offload(const Scenario& scenario, const SearchSpace& space);

// What plans of the space may use of a device, so that they run out of memory no likelier than the
// space allows (at a peak of its whole capacity every second run would).
Bytes memory_limit(const Scenario& scenario, const SearchSpace& space);
// The memory that a device must have for a plan of this peak to fit.
Bytes memory_for(const Scenario& scenario, const SearchSpace& space, Bytes peak);

}  // namespace tpsim

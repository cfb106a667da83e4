// Sensitivity to hardware: how the step changes with each hardware constant, and at which values
// another plan becomes the best. All results come from new predictions and searches.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/enum_words.h"
#include "core/base/result.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim {

enum class Constant : std::uint8_t {
  kLinkBandwidth,  // NVLink or PCIe inside a node
  kNicBandwidth,
  kLatency,  // of links, NICs and collectives
  kMemoryBandwidth,
  kFlops,  // FLOP/s of GEMMs
  kHost,   // all host time for launching kernels and collectives
  kJitter,
};
template <>
inline constexpr auto kEnumNames<Constant> =
    std::to_array<std::string_view>({"link bandwidth", "NIC bandwidth", "network latency",
                                     "memory bandwidth", "FLOP/s", "host time", "jitter"});
inline constexpr int kConstantCount = static_cast<int>(Constant::kJitter) + 1;

// Returns the scenario with one constant multiplied by `factor`. Measured samples scale with the
// constant that limits them: GEMMs with FLOP/s, other kernels with memory bandwidth, collectives
// with link bandwidth. The time of a collective's smallest message is latency, and the link
// bandwidth does not scale it.
Scenario with_constant(Scenario scenario, Constant constant, double factor);

struct Sensitivity {
  Constant constant{};
  Seconds step;       // step of the same plan with the constant 10 % larger
  double change = 0;  // relative change of the step
};
inline constexpr double kNudge = 1.1;
// Returns the sensitivities, largest effect first.
std::vector<Sensitivity> sensitivities(const Scenario& scenario, const Plan& plan);

// Called with the completed share of the work, in [0,1]; may be empty.
using HearShare = std::function<void(double)>;

// Amount of GPU memory from which a faster plan fits.
struct MemoryBreakEven {
  Bytes memory;    // required memory of one GPU
  PlannedRun run;  // the plan that fits with this memory
  // Relative gain over the best plan with today's memory: best step / this step - 1. Empty if no
  // plan fits today.
  std::optional<double> gain;
};
// Returns break-evens in ascending order of memory, up to `most` times today's memory. Each plan is
// at least 1 % faster than the previous one. If no plan fits today, returns only the plan that
// needs the least memory.
Result<std::vector<MemoryBreakEven>> memory_break_evens(const Scenario& scenario,
                                                        const SearchSpace& space, double most,
                                                        int threads = 1,
                                                        const HearShare& progress = {});

// Value of one constant at which the best plan changes, found by bisection with new searches.
struct PlanBreakEven {
  Constant constant{};
  double factor = 1;  // relative to today's value
  Plan before, after;
};
// Returns the first change for higher and for lower values of each bandwidth, within 1/4 to 4 times
// today's value, to a precision of 1/1000. `today`: the best plan, if a search has already found
// it.
Result<std::vector<PlanBreakEven>> plan_break_evens(const Scenario& scenario,
                                                    const SearchSpace& space, int threads = 1,
                                                    const HearShare& progress = {},
                                                    std::optional<Plan> today = {});

}  // namespace tpsim

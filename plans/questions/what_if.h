// What would change if the machine were another: how the step answers to each constant, and at
// which value another plan becomes the best. All by predicting and planning anew.
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
  kLinkBandwidth,  // inside a node
  kNicBandwidth,
  kLatency,  // of links, NICs and collectives
  kMemoryBandwidth,
  kFlops,  // of matrix products
  kHost,   // all that the host takes to issue work
  kJitter,
};
template <>
inline constexpr auto kEnumNames<Constant> =
    std::to_array<std::string_view>({"link bandwidth", "NIC bandwidth", "network latency",
                                     "memory bandwidth", "FLOP/s", "host time", "jitter"});
inline constexpr int kConstantCount = static_cast<int>(Constant::kJitter) + 1;

// The machine with one constant `factor` times as large. Measured samples move with the constant
// that rules them: products with FLOPs, other kernels with memory bandwidth, collectives with the
// link's bandwidth beyond the time of their smallest message, which is latency.
Scenario with_constant(Scenario scenario, Constant constant, double factor);

struct Sensitivity {
  Constant constant{};
  Seconds step;       // of the same plan with the constant 10 % larger
  double change = 0;  // of the step, relative
};
inline constexpr double kNudge = 1.1;
// Most important first.
std::vector<Sensitivity> sensitivities(const Scenario& scenario, const Plan& plan);

// Hears the done share of long work, in [0,1]; may be empty.
using HearShare = std::function<void(double)>;

// Memory of one GPU at which a faster plan fits.
struct MemoryBreakEven {
  Bytes memory;                // as much a GPU must have
  PlannedRun run;              // the plan that it unlocks
  std::optional<double> gain;  // of speed over the best plan that fits today; none where none fits
};
// By rising memory, up to `most` times today's; each faster than those before it by 1 % or more.
// If no plan fits today, returns only the first plan that more memory unlocks.
Result<std::vector<MemoryBreakEven>> memory_break_evens(const Scenario& scenario,
                                                        const SearchSpace& space, double most,
                                                        int threads = 1,
                                                        const HearShare& progress = {});

// Where along one constant the best plan changes: found by bisection over planning anew.
struct PlanBreakEven {
  Constant constant{};
  double factor = 1;  // times today's value
  Plan before, after;
};
// The first change upwards and downwards within [1/4, 4], to 1 part in 1000, for the bandwidths.
// `today` is the best plan, where a search has found it already.
Result<std::vector<PlanBreakEven>> plan_break_evens(const Scenario& scenario,
                                                    const SearchSpace& space, int threads = 1,
                                                    const HearShare& progress = {},
                                                    std::optional<Plan> today = {});

}  // namespace tpsim

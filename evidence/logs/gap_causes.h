// Why a run differs from its prediction: causes, and which of them explains slower steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_words.h"
#include "core/plan/plan.h"
#include "core/plan/report.h"
#include "evidence/logs/training_log.h"

namespace tpsim {

enum class GapCause : std::uint8_t {
  kSlowerCompute,
  kSlowerLinks,
  kStraggler,
  kHostBound,
  kMemory,
  kFaster,
  kUnexplained,
  kUnsound,     // losses that are NaN or infinite, skipped steps
  kImpossible,  // rates that no such GPU has
};
template <>
inline constexpr auto kEnumNames<GapCause> = std::to_array<std::string_view>(
    {"slower compute", "slower links", "a straggler", "host-bound", "memory",
     "faster than predicted", "unexplained", "unsound run", "impossible rate"});

struct Finding {
  GapCause cause;
  std::string evidence;
};

// First steps of a log, left out where it has more than twice as many.
inline constexpr std::size_t kWarmUpSteps = 2;

// Causes of steps that take longer than predicted, the main one first: ranks whose compute differs,
// else the timers that exceed their terms by most. kUnexplained where the log shows neither.
std::vector<Finding> explained_gap(const Plan& plan, const Prediction& predicted,
                                   const TrainingLog& log, Seconds measured);

}  // namespace tpsim

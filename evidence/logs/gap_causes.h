// Causes of a difference between a measured step and its prediction.
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
  kUnsound,         // NaN or infinite losses, or skipped steps
  kImpossible,      // rates above the GPU's peak
  kOtherArguments,  // the log's arguments are not those of the plan
};
template <>
inline constexpr auto kEnumNames<GapCause> = std::to_array<std::string_view>(
    {"slower compute", "slower links", "a straggler", "host-bound", "memory",
     "faster than predicted", "unexplained", "unsound run", "impossible rate", "other arguments"});

struct Finding {
  GapCause cause;
  std::string evidence;
};

// Number of steps at the start of a log that are skipped if the log has more than twice as many.
inline constexpr std::size_t kWarmUpSteps = 2;

// Returns the causes of a step that is slower than predicted, the largest first: a straggler, or
// phases whose timers exceed the prediction. Returns kUnexplained if the log shows neither.
// `measured` is the step time.
std::vector<Finding> explained_gap(const Plan& plan, const Prediction& predicted,
                                   const TrainingLog& log, Seconds measured);

}  // namespace tpsim

// The batch of a run that starts small, as Megatron's --rampup-batch-size describes it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

// From `start` sequences in a step up by `increment` at a time until the full batch, over `samples`
// sequences, the same number for each size. No ramp when start is 0.
struct BatchRamp {
  std::int64_t start = 0;
  std::int64_t increment = 0;
  std::int64_t samples = 0;
};

struct RampPhase {
  std::int64_t global_batch = 0;
  std::int64_t steps = 0;
};

// An error unless increments lead from start to full_batch exactly.
Status validate(const BatchRamp& ramp, std::int64_t full_batch);

// Steps by batch size, smallest first, until at least `samples` sequences are consumed. A size ends
// with the step that reaches its share of the ramp, so the next one starts a little late.
std::vector<RampPhase> ramp_phases(const BatchRamp& ramp, std::int64_t full_batch,
                                   std::int64_t samples);

}  // namespace tpsim

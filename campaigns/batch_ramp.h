// Batch size ramp-up, as Megatron's --rampup-batch-size.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

// The global batch grows from `start` to the full batch in steps of `increment`, over `samples`
// sequences, with equal shares for each size. start = 0: no ramp.
struct BatchRamp {
  std::int64_t start = 0;
  std::int64_t increment = 0;
  std::int64_t samples = 0;
};

struct RampPhase {
  std::int64_t global_batch = 0;
  std::int64_t steps = 0;
};

// Error unless increments lead from start to full_batch exactly.
Status validate(const BatchRamp& ramp, std::int64_t full_batch);

// Returns the steps of each batch size, smallest first, until at least `samples` sequences are
// consumed. A size ends with the step that reaches its share, so that the next size starts slightly
// later.
std::vector<RampPhase> ramp_phases(const BatchRamp& ramp, std::int64_t full_batch,
                                   std::int64_t samples);

}  // namespace tpsim

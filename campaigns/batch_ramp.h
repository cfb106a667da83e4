// Batch size ramp-up, as Megatron's --rampup-batch-size.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

// The global batch grows from `start` to the full batch in steps of `increment`. All sizes below
// the full batch share `samples` sequences equally. start = 0: no ramp.
struct BatchRamp {
  std::int64_t start = 0;
  std::int64_t increment = 0;
  std::int64_t samples = 0;
};

struct RampPhase {
  std::int64_t global_batch = 0;
  std::int64_t steps = 0;
};

// Error unless the full batch is `start` plus a multiple of `increment`.
Status validate(const BatchRamp& ramp, std::int64_t full_batch);

// Returns the number of steps at each batch size, smallest first, until at least `samples`
// sequences are consumed. The step that reaches the share of a size still runs in full, so the next
// size starts up to one step later.
std::vector<RampPhase> ramp_phases(const BatchRamp& ramp, std::int64_t full_batch,
                                   std::int64_t samples);

}  // namespace tpsim

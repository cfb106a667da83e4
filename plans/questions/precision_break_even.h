// Hidden width from which a low-precision recipe is faster. Its GEMMs are faster, but casts and
// their launches cost time that grows with a lower power of the width.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace tpsim {

struct PrecisionBreakEven {
  Precision precision{};
  // Smallest hidden width from which on a block is faster with the recipe; 0 if there is none up to
  // kWidestTried.
  std::int64_t width = 0;
  double gain = 0;  // relative speedup of a block of the model itself, forward and backward
};

inline constexpr std::int64_t kWidestTried = 65536;

// Returns the break-even of every recipe that the GPU supports and `plan` could use, for the plan's
// micro-batch, tensor and context parallelism. Other widths of a block scale with hidden. Empty if
// the plan's dtype is not bf16.
std::vector<PrecisionBreakEven> precision_break_evens(const Scenario& scenario, const Plan& plan);

// Returns the model with another hidden width, with heads, FFN width and experts in proportion.
// Head widths are rounded to multiples of 8, and tensor-parallel widths to multiples of 64 x tp.
ModelSpec with_width(ModelSpec model, std::int64_t hidden, std::int64_t tp);

}  // namespace tpsim

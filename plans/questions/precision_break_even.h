// From which width on a recipe of fewer bits pays: its products are faster, its roundings and the
// launches around them are work that 16 bits do not have, and grow with a lower power of the width.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace tpsim {

struct PrecisionBreakEven {
  Precision precision{};
  // The hidden width from which on a block takes less time with the recipe than without any; 0
  // where it does not, up to kWidestTried.
  std::int64_t width = 0;
  double gain = 0;  // of the speed of a block of the model itself, forward and backward
};

inline constexpr std::int64_t kWidestTried = 65536;

// Of every recipe that the GPU multiplies and `plan` could have, for the plan's micro-batch, tensor
// and context parallelism; the other widths of a block grow with hidden. Empty where the plan is
// not of bf16.
std::vector<PrecisionBreakEven> precision_break_evens(const Scenario& scenario, const Plan& plan);

// The model with another hidden width, and its heads, feed-forward part and experts in proportion:
// to multiples of 8 for a head and of 64 for what tensor parallelism cuts.
ModelSpec with_width(ModelSpec model, std::int64_t hidden, std::int64_t tp);

}  // namespace tpsim

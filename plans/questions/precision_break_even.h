// Break-even of low-precision recipes: the hidden width from which a recipe makes a block faster.
// Low precision speeds up GEMMs, whose time grows faster with the width than the time of the added
// casts and kernel launches.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace tpsim {

struct PrecisionBreakEven {
  Precision precision{};
  // Smallest hidden width such that a block is faster with the recipe at this and all tried larger
  // widths. 0 if there is none up to kWidestTried.
  std::int64_t width = 0;
  // Relative speedup at the model's own width, for forward and backward of a block.
  double gain = 0;
};

inline constexpr std::int64_t kWidestTried = 65536;

// Returns the break-even of every recipe that the GPU supports, at the plan's micro-batch, tensor
// and context parallelism. The other widths of a block scale with hidden. Empty if the plan's dtype
// is not bf16.
std::vector<PrecisionBreakEven> precision_break_evens(const Scenario& scenario, const Plan& plan);

// Returns the model with another hidden width. Head dimensions, FFN width and experts scale in
// proportion. Head dimensions are rounded to multiples of 8, tensor-parallel widths to multiples of
// 64 x tp.
ModelSpec with_width(ModelSpec model, std::int64_t hidden, std::int64_t tp);

}  // namespace tpsim

// Operands of matrix products rounded to 8 bits as newer GPUs take them, on floats that hold the
// rounded values: what a recipe (core/plan/plan.h, Precision) does to numbers, without its speed.
#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace tpsim {

// E4M3 (three bits of mantissa, up to 448) or E5M2 (two, up to 57344): to nearest, ties to even,
// values beyond the greatest become it. NaN and infinities stay.
float rounded_to_e4m3(float value);
float rounded_to_e5m2(float value);

// Whether devices here round by the recipe. NVFP4 draws random numbers, which none does.
bool is_emulated(Precision recipe);

// A row-major matrix whose products sum over its columns, or over its rows.
struct RoundedMatrix {
  float* data = nullptr;
  std::int64_t rows = 0, cols = 0;
  bool sums_over_rows = false;
};
// How a scale of a whole tensor is found.
struct TensorScaling {
  float unit = 0;  // what a unit stands for; 0: the greatest magnitude becomes the format's
  float* greatest = nullptr;  // raised to the matrix's; null: nobody asks
};

struct RoundedAs {
  Precision recipe = Precision::kNone;
  bool is_gradient = false, is_weight = false;
  TensorScaling scaling = {};
};
// Scales: one for the matrix (kFp8, kFp8Current), one of a power of two for every 128 elements that
// are summed over, or 128 x 128 of weights (kFp8Block), or for every 32 (kMxFp8). Gradients with
// one scale a matrix are E5M2, all else is E4M3.
void round_operand(const RoundedMatrix& matrix, const RoundedAs& as);

}  // namespace tpsim

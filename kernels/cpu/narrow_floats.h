// Quantization of GEMM operands to 8 bits, as on newer GPUs. The rounded values are stored as fp32:
// a recipe (core/plan/plan.h, Precision) has the numerics of a GPU but not the speed.
#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace tpsim {

// Rounds to E4M3 (3 mantissa bits, maximum 448) or E5M2 (2 mantissa bits, maximum 57344), to
// nearest, ties to even. Larger values saturate. NaN and infinities are kept.
float rounded_to_e4m3(float value);
float rounded_to_e5m2(float value);

// Whether the CPU devices emulate the recipe. NVFP4 needs random numbers and is not emulated.
bool is_emulated(Precision recipe);

// A row-major matrix. The GEMM sums over its columns, or over its rows.
struct RoundedMatrix {
  float* data = nullptr;
  std::int64_t rows = 0, cols = 0;
  bool sums_over_rows = false;
};
// Per-tensor scaling.
struct TensorScaling {
  float unit = 0;             // scale: value of one quantized unit; 0: amax / maximum of the format
  float* greatest = nullptr;  // raised to the matrix's amax; may be null
};

struct RoundedAs {
  Precision recipe = Precision::kNone;
  bool is_gradient = false, is_weight = false;
  TensorScaling scaling = {};
};
// Quantizes a matrix in place. kFp8 and kFp8Current have one scale per matrix. kFp8Block has a
// power-of-two scale per 128 elements along the summed dimension, or per 128 x 128 elements of
// weights. kMxFp8 has a power-of-two scale per 32 elements. Gradients with one scale per matrix are
// E5M2, all else is E4M3.
void round_operand(const RoundedMatrix& matrix, const RoundedAs& as);

}  // namespace tpsim

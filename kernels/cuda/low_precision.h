// Operands of products in 8 bits, as cuBLASLt takes them: one scale a matrix, the elements that are
// summed over side by side.
#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_state.h"
#include "kernels/ops.h"

namespace tpsim {

// cuBLASLt multiplies 8 bits in multiples of so many, and reads 16 bytes at a time.
inline constexpr std::int64_t kNarrowMultiple = 16;
constexpr std::int64_t narrow_multiple(std::int64_t n) {
  return (n + kNarrowMultiple - 1) / kNarrowMultiple * kNarrowMultiple;
}

// What rounding a matrix works with, in floats, beside its result.
inline constexpr std::int64_t kNarrowWork = 1024;

struct NarrowMatrix {
  std::uint8_t* data = nullptr;      // [rows, depth], zeros beyond the matrix
  std::int64_t rows = 0, depth = 0;  // multiples of kNarrowMultiple, but for rows of the first
  float* scale = nullptr;            // one number: what a unit stands for
};

// The matrix rounded to E4M3, or E5M2 of gradients, to nearest even: its greatest magnitude becomes
// the format's. `sums_over_rows`: of the matrix as it lies, so that its columns become rows. What
// is not finite makes all products so.
struct Narrowing {
  const Matrix& from;
  bool sums_over_rows = false, is_gradient = false;
  NarrowMatrix to;
  float* work = nullptr;  // kNarrowWork
};
void narrow(const Narrowing& narrowing, const CudaState& state);

// c = sums + beta c; sums [c.rows, stride] fp32.
void add_sums(const float* sums, std::int64_t stride, float beta, const Matrix& c,
              const CudaState& state);

}  // namespace tpsim

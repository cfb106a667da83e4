// Products of operands rounded to 8 bits, by cuBLASLt: which recipes a GPU has, and one product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/cuda/linear/narrow_matrix.h"
#include "kernels/cuda/runtime/cuda_state.h"
#include "kernels/ops.h"

namespace tpsim {

// What products in 8 bits depend on.
struct NarrowGpu {
  std::string name;
  int capability = 80;              // 90 for compute capability 9.0
  std::size_t library_version = 0;  // as cublasLtGetVersion says it
};
// Why the GPU has no products by the recipe, with the nearest that it has; empty where it has.
std::string refusal_reason(Precision recipe, const NarrowGpu& gpu);

// One product, without batches.
void multiply_in_8_bits(const Matmul& op, CudaState& state);

// Operands of products in 8 bits, as cuBLASLt takes them: the elements that are summed over side by
// side, and scales in the layouts that its documentation gives (Narrow Precision Data Types Usage).
// cuBLASLt multiplies 8 bits in multiples of so many, and reads 16 bytes at a time.
inline constexpr std::int64_t kNarrowMultiple = 16;
constexpr std::int64_t multiple_of(std::int64_t least, std::int64_t n) {
  return (n + least - 1) / least * least;
}

// Of NarrowMatrix::scales; it begins at a multiple of 16 bytes.
std::int64_t scale_bytes(ScalesOf scales, std::int64_t rows, std::int64_t depth);

// The scale of a whole tensor on the GPU, in floats: what a unit stands for, and the greatest
// magnitude met (OperandRounding::a_scale).
struct TensorScale {
  float* unit = nullptr;      // written, where it is the tensor's own
  float* greatest = nullptr;  // raised; null: nobody asks
  // The tensor's own: its greatest magnitude becomes the format's. Zero beforehand. Null: the unit
  // is known.
  int* own_amax = nullptr;
};

// The matrix rounded to E4M3, or E5M2 of gradients with one scale, to nearest even, in one pass
// over it (two where a tensor's scale is its own): as it lies, for products that sum over its
// columns, and turned, for those that sum over its rows. Scales of blocks are powers of two, so
// that their greatest magnitude is at most the format's. What is not finite makes its products so.
struct Narrowing {
  const Matrix& from;
  bool is_e5m2 = false;
  ScalesOf scales = ScalesOf::kTensor;
  NarrowMatrix as_stored, turned;
  TensorScale of_tensor = {};  // of kTensor
};
void narrow(const Narrowing& narrowing, const CudaState& state);

// c = sums + beta c; sums [c.rows, stride] fp32.
void add_sums(const float* sums, std::int64_t stride, float beta, const Matrix& c,
              const CudaState& state);

}  // namespace tpsim

// GEMMs by cuBLASLt with operands quantized to 8 bits, and the recipes that a GPU supports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/cuda/linear/narrow_matrix.h"
#include "kernels/cuda/runtime/cuda_state.h"
#include "kernels/ops.h"

namespace tpsim {

// Properties of a GPU on which support for 8-bit GEMMs depends.
struct NarrowGpu {
  std::string name;
  int capability = 80;              // 90 for compute capability 9.0
  std::size_t library_version = 0;  // in the encoding of cublasLtGetVersion
};
// Returns the reason why the GPU cannot run GEMMs of the recipe, and the nearest supported recipe;
// empty if the GPU supports the recipe.
std::string refusal_reason(Precision recipe, const NarrowGpu& gpu);

// Runs one GEMM without batches.
void multiply_in_8_bits(const Matmul& op, CudaState& state);

// Operands of 8-bit GEMMs in cuBLASLt's layout: elements along the summed dimension are adjacent,
// and scales follow its documentation ("Narrow Precision Data Types Usage"). Extents must be
// multiples of kNarrowMultiple, since cuBLASLt reads 16 bytes at a time.
inline constexpr std::int64_t kNarrowMultiple = 16;
constexpr std::int64_t multiple_of(std::int64_t least, std::int64_t n) {
  return (n + least - 1) / least * least;
}

// Returns the size in bytes of NarrowMatrix::scales, which must be aligned to 16 bytes.
std::int64_t scale_bytes(ScalesOf scales, std::int64_t rows, std::int64_t depth);

// Addresses on the GPU of a whole tensor's scale and amax (OperandRounding::a_scale).
struct TensorScale {
  float* unit = nullptr;      // scale; written if own_amax is set
  float* greatest = nullptr;  // amax, raised; may be null
  // Workspace for the amax of this tensor, initialized to 0, if the scale is computed from it. Null
  // if the scale is given.
  int* own_amax = nullptr;
};

// Quantizes a matrix to E4M3 (gradients with one scale: E5M2), to nearest even. Takes one pass, or
// two with current scaling. Writes the matrix as stored, for GEMMs that sum over its columns, and
// transposed, for GEMMs that sum over its rows. Block scales are powers of two, so that the block's
// amax is at most the format's maximum. Non-finite elements make the GEMM's results non-finite.
struct Narrowing {
  const Matrix& from;
  bool is_e5m2 = false;
  ScalesOf scales = ScalesOf::kTensor;
  NarrowMatrix as_stored, turned;
  TensorScale of_tensor = {};  // for kTensor
};
void narrow(const Narrowing& narrowing, const CudaState& state);

// Computes c = sums + beta c. sums is [c.rows, stride] fp32.
void add_sums(const float* sums, std::int64_t stride, float beta, const Matrix& c,
              const CudaState& state);

}  // namespace tpsim

// Products of operands rounded to 8 bits, by cuBLASLt: which recipes a GPU has, and one product.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/cuda/cuda_state.h"
#include "kernels/ops.h"

namespace tpsim {

// What products in 8 bits depend on.
struct NarrowGpu {
  std::string name;
  int capability = 80;              // 90 for compute capability 9.0
  std::size_t library_version = 0;  // as cublasLtGetVersion says it
};
// Why the GPU has no products by the recipe, with the nearest that it has; empty where it has.
std::string reason_against(Precision recipe, const NarrowGpu& gpu);

// One product, without batches.
void multiply_in_8_bits(const Matmul& op, CudaState& state);

}  // namespace tpsim

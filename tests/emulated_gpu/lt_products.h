// cuBLASLt's GEMMs on the host: column-major matrices, with sums in double, rounded once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/linear/cublas_lt.h"

namespace tpsim::emulated {

struct LtLayout {
  cudaDataType_t type;
  std::uint64_t rows, cols;
  std::int64_t leading;
  std::int32_t batch = 1;
  std::int64_t stride = 0;
};

// Scaling of an 8-bit operand.
struct LtScaling {
  const void* scales = nullptr;
  std::int32_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
};

struct LtCall {
  LtLayout a, b, c, d;
  bool a_transposed, b_transposed;
  const void *a_data, *b_data, *c_data;
  void *d_data, *workspace;
  float alpha, beta;
  bool backwards;  // the second algorithm
  LtScaling a_scaling, b_scaling;
};

inline constexpr std::size_t kWorkspace = std::size_t{1} << 20;  // bytes, for the second algorithm

bool is_8_bits(cudaDataType_t type);

void multiply(const LtCall& call);

}  // namespace tpsim::emulated

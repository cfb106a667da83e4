// GEMM of fp32 matrices in host memory, on one thread: oneDNN if the build found it, else OpenBLAS,
// else Eigen, which every build has.
#pragma once

#include <cstdint>

namespace tpsim {

// A row-major matrix. rows and cols are those in memory, before the transposition.
struct FloatMatrix {
  const float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;  // elements between rows
  bool transposed = false;  // use the transpose
};

// c[m, n] = alpha op(a) op(b) + beta c. Rows of c are c_stride elements apart. With beta = 0, c may
// be uninitialized.
void gemm(const FloatMatrix& a, const FloatMatrix& b, float* c, std::int64_t c_stride, float alpha,
          float beta);

// Disables the threads of the BLAS library, because each rank has one thread.
void use_one_blas_thread();

}  // namespace tpsim

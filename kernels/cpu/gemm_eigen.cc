// GEMM with Eigen, whose headers every build has.
#include <Eigen/Core>

#include "core/base/check.h"
#include "kernels/cpu/gemm.h"

namespace tpsim {
namespace {

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<Eigen::Dynamic>;
using Input = Eigen::Map<const Rows, Eigen::Unaligned, Stride>;
using Output = Eigen::Map<Rows, Eigen::Unaligned, Stride>;

Input view_of(const FloatMatrix& matrix) {
  return {matrix.data, matrix.rows, matrix.cols, Stride(matrix.stride)};
}

// Adds alpha a b to c. Eigen compiles a separate kernel for each layout of a and b.
template <class A>
void add_product(const A& a, const FloatMatrix& b, float alpha, Output& c) {
  if (b.transposed) {
    c.noalias() += alpha * a * view_of(b).transpose();
  } else {
    c.noalias() += alpha * a * view_of(b);
  }
}

}  // namespace

void gemm(const FloatMatrix& a, const FloatMatrix& b, float* c, std::int64_t c_stride, float alpha,
          float beta) {
  const std::int64_t m = a.transposed ? a.cols : a.rows;
  const std::int64_t n = b.transposed ? b.rows : b.cols;
  TPSIM_CHECK((a.transposed ? a.rows : a.cols) == (b.transposed ? b.cols : b.rows),
              "inner extents agree");
  Output out(c, m, n, Stride(c_stride));
  // With beta = 0, c may be uninitialized: a NaN times 0 would remain NaN.
  if (beta == 0) {
    out.setZero();
  } else if (beta != 1) {
    out *= beta;
  }
  if (a.transposed) {
    add_product(view_of(a).transpose(), b, alpha, out);
  } else {
    add_product(view_of(a), b, alpha, out);
  }
}

// Built without OpenMP, Eigen starts no threads.
void use_one_blas_thread() {}

}  // namespace tpsim

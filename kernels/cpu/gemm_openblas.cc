#include <cblas.h>

#include "core/base/check.h"
#include "kernels/cpu/gemm.h"

namespace tpsim {

void gemm(const FloatMatrix& a, const FloatMatrix& b, float* c, std::int64_t c_stride, float alpha,
          float beta) {
  const std::int64_t m = a.transposed ? a.cols : a.rows;
  const std::int64_t k = a.transposed ? a.rows : a.cols;
  const std::int64_t n = b.transposed ? b.rows : b.cols;
  TPSIM_CHECK(k == (b.transposed ? b.cols : b.rows), "inner extents agree");
  const auto as_blas = [](std::int64_t x) { return static_cast<blasint>(x); };
  cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, as_blas(m), as_blas(n), as_blas(k), alpha,
              a.data, as_blas(a.stride), b.data, as_blas(b.stride), beta, c, as_blas(c_stride));
}

void use_one_blas_thread() { openblas_set_num_threads(1); }

}  // namespace tpsim

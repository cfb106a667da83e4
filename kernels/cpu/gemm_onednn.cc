// GEMM with oneDNN.
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include "core/base/check.h"
#include "kernels/cpu/gemm.h"

namespace tpsim {

void gemm(const FloatMatrix& a, const FloatMatrix& b, float* c, std::int64_t c_stride, float alpha,
          float beta) {
  const std::int64_t m = a.transposed ? a.cols : a.rows;
  const std::int64_t k = a.transposed ? a.rows : a.cols;
  const std::int64_t n = b.transposed ? b.rows : b.cols;
  TPSIM_CHECK(k == (b.transposed ? b.cols : b.rows), "inner extents agree");
  omp_set_num_threads(1);  // applies to the calling thread only, and each rank is a thread
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data,
                 a.stride, b.data, b.stride, beta, c, c_stride);
  TPSIM_CHECK(status == dnnl_success, "oneDNN takes every fp32 product");
}

void use_one_blas_thread() { omp_set_num_threads(1); }

}  // namespace tpsim

#include "tests/emulated_gpu/lt_products.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

namespace tpsim::emulated {
namespace {

double from_8_bits(const void* data, cudaDataType_t type, std::int64_t i) {
  const auto format = type == CUDA_R_8F_E4M3 ? __NV_E4M3 : __NV_E5M2;
  return __half2float(
      __nv_cvt_fp8_to_halfraw(static_cast<const __nv_fp8_storage_t*>(data)[i], format));
}

double element(const void* data, cudaDataType_t type, std::int64_t i) {
  switch (type) {
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2: return from_8_bits(data, type, i);
    case CUDA_R_16BF: return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    case CUDA_R_16F: return __half2float(static_cast<const __half*>(data)[i]);
    default: return static_cast<const float*>(data)[i];
  }
}

void set_element(void* data, cudaDataType_t type, std::int64_t i, double x) {
  switch (type) {
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(static_cast<float>(x));
      break;
    case CUDA_R_16F: static_cast<__half*>(data)[i] = __float2half_rn(static_cast<float>(x)); break;
    default: static_cast<float*>(data)[i] = static_cast<float>(x); break;
  }
}

// Scale of an element; `inner` is its index along the summed dimension. One byte of UE8M0 is a
// power of two; 255 is NaN.
double scale_of(const LtScaling& scaling, const LtLayout& x, std::int64_t inner,
                std::int64_t outer) {
  if (scaling.scales == nullptr) return 1;
  const auto* const floats = static_cast<const float*>(scaling.scales);
  const auto depth = static_cast<std::int64_t>(x.rows), lines = static_cast<std::int64_t>(x.cols);
  switch (scaling.mode) {
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F: return floats[inner / 128 * lines + outer];
    case CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F: {
      const std::int64_t stride = (depth + 511) / 512 * 4;
      return floats[outer / 128 * stride + inner / 128];
    }
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0: {
      // "offset = (outer % 32) * 16 + (outer / 32) * 4 + inner" inside a block of 128 x 4; blocks
      // in row-major order.
      const std::int64_t factors = (depth + 127) / 128 * 4, factor = inner / 32;
      const std::int64_t block = (factor / 4 * 4 + outer / 128 * factors) * 128;
      const std::int64_t in_block = outer % 32 * 16 + outer % 128 / 32 * 4 + factor % 4;
      const int exponent = static_cast<const std::uint8_t*>(scaling.scales)[block + in_block];
      return exponent == 255 ? std::nan("") : std::ldexp(1.0, exponent - 127);
    }
    default: return *floats;
  }
}

// The matrix's elements with the summed dimension contiguous.
std::vector<double> lines_of(const LtLayout& x, const void* data, std::int64_t batch,
                             bool along_rows, const LtScaling& scaling) {
  const auto rows = static_cast<std::int64_t>(x.rows), cols = static_cast<std::int64_t>(x.cols);
  std::vector<double> lines(x.rows * x.cols);
  for (std::int64_t col = 0; col < cols; ++col) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t to = along_rows ? row * cols + col : col * rows + row;
      lines[static_cast<std::size_t>(to)] =
          scale_of(scaling, x, row, col) *
          element(data, x.type, batch * x.stride + col * x.leading + row);
    }
  }
  return lines;
}

// Sums in several interleaved partial sums.
double product_of(const double* a, const double* b, std::int64_t depth, bool backwards) {
  constexpr std::int64_t kStrands = 8;
  std::array<double, kStrands> sums{};
  std::int64_t k = 0;
  for (; k + kStrands <= depth; k += kStrands) {
    for (std::int64_t i = 0; i < kStrands; ++i) {
      sums[static_cast<std::size_t>(i)] += a[k + i] * b[k + i];
    }
  }
  for (; k < depth; ++k) sums[0] += a[k] * b[k];
  return backwards ? std::accumulate(sums.rbegin(), sums.rend(), 0.0)
                   : std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

bool is_8_bits(cudaDataType_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

void multiply(const LtCall& call) {
  if (call.backwards) std::memset(call.workspace, 0xff, kWorkspace);
  const auto depth = static_cast<std::int64_t>(call.a_transposed ? call.a.rows : call.a.cols);
  for (std::int64_t batch = 0; batch < call.d.batch; ++batch) {
    const auto a = lines_of(call.a, call.a_data, batch, !call.a_transposed, call.a_scaling);
    const auto b = lines_of(call.b, call.b_data, batch, call.b_transposed, call.b_scaling);
    for (std::int64_t col = 0; col < static_cast<std::int64_t>(call.d.cols); ++col) {
      for (std::int64_t row = 0; row < static_cast<std::int64_t>(call.d.rows); ++row) {
        double sum = double{call.alpha} * product_of(a.data() + row * depth, b.data() + col * depth,
                                                     depth, call.backwards);
        if (call.beta != 0.0F) {
          sum += double{call.beta} * element(call.c_data, call.c.type,
                                             batch * call.c.stride + col * call.c.leading + row);
        }
        set_element(call.d_data, call.d.type, batch * call.d.stride + col * call.d.leading + row,
                    sum);
      }
    }
  }
}

}  // namespace tpsim::emulated

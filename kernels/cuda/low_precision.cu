#include <cuda_fp8.h>

#include <algorithm>

#include "kernels/cuda/block_sums.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/low_precision.h"

namespace tpsim {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 32;              // of a transpose, square
constexpr int kTileRows = 8;           // that its threads read at once
constexpr int kEach = 4;               // bytes that a thread writes at once
constexpr unsigned kMostRows = 65535;  // of a grid

// A matrix as it lies, with `stride` elements between rows.
template <class T>
struct Lying {
  const T* data;
  std::int64_t rows, cols, stride;

  __device__ float at(std::int64_t row, std::int64_t col) const {
    return row < rows && col < cols ? widened(data[row * stride + col]) : 0.0F;
  }
};

// fmaxf would lose what is not a number.
struct GreatestOf {
  __device__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};

template <class T>
__global__ void __launch_bounds__(kThreads) greatest_kernel(const Lying<T> x, float* of_block) {
  float greatest[1] = {0.0F};
  for (std::int64_t row = blockIdx.x; row < x.rows; row += gridDim.x) {
    for (std::int64_t col = threadIdx.x; col < x.cols; col += kThreads) {
      greatest[0] = GreatestOf{}(fabsf(x.at(row, col)), greatest[0]);
    }
  }
  block_reduce(greatest, GreatestOf{});
  if (threadIdx.x == 0) of_block[blockIdx.x] = greatest[0];
}

__global__ void __launch_bounds__(kThreads)
    scale_kernel(const float* of_block, int blocks, float greatest_of_format, float* scale) {
  float greatest[1] = {0.0F};
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kThreads) {
    greatest[0] = GreatestOf{}(of_block[i], greatest[0]);
  }
  block_reduce(greatest, GreatestOf{});
  if (threadIdx.x == 0) *scale = greatest[0] == 0 ? 1.0F : greatest[0] / greatest_of_format;
}

template <__nv_fp8_interpretation_t kFormat>
__device__ std::uint8_t rounded(float x, float scale) {
  return __nv_cvt_float_to_fp8(x / scale, __NV_SATFINITE, kFormat);
}

// A row of `to` after the other, each a row of `x`.
template <__nv_fp8_interpretation_t kFormat, class T>
__global__ void __launch_bounds__(kThreads)
    narrow_kernel(const Lying<T> x, const float* scale, std::uint8_t* to, std::int64_t rows,
                  std::int64_t depth) {
  const float unit = *scale;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads * kEach;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    std::int64_t col = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEach;
    for (; col < depth; col += step) {
      uchar4 four;
      four.x = rounded<kFormat>(x.at(row, col), unit);
      four.y = rounded<kFormat>(x.at(row, col + 1), unit);
      four.z = rounded<kFormat>(x.at(row, col + 2), unit);
      four.w = rounded<kFormat>(x.at(row, col + 3), unit);
      *reinterpret_cast<uchar4*>(to + row * depth + col) = four;
    }
  }
}

// Rows of `to` are columns of `x`: tiles are read along rows and written along columns.
template <__nv_fp8_interpretation_t kFormat, class T>
__global__ void __launch_bounds__(kTile* kTileRows)
    narrow_transposed_kernel(const Lying<T> x, const float* scale, std::uint8_t* to,
                             std::int64_t rows, std::int64_t depth) {
  __shared__ std::uint8_t tile[kTile][kTile + 4];
  const float unit = *scale;
  const std::int64_t first_depth = std::int64_t{blockIdx.x} * kTile;
  for (std::int64_t first_row = std::int64_t{blockIdx.y} * kTile; first_row < rows;
       first_row += std::int64_t{gridDim.y} * kTile) {
    for (int y = static_cast<int>(threadIdx.y); y < kTile; y += kTileRows) {
      tile[y][threadIdx.x] = rounded<kFormat>(x.at(first_depth + y, first_row + threadIdx.x), unit);
    }
    __syncthreads();
    for (int y = static_cast<int>(threadIdx.y); y < kTile; y += kTileRows) {
      const std::int64_t row = first_row + y, at = first_depth + threadIdx.x;
      if (row < rows && at < depth) to[row * depth + at] = tile[threadIdx.x][y];
    }
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    add_sums_kernel(const float* sums, std::int64_t stride, float beta, T* c, std::int64_t rows,
                    std::int64_t cols, std::int64_t c_stride) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    for (std::int64_t col = threadIdx.x; col < cols; col += kThreads) {
      T& to = c[row * c_stride + col];
      const float before = beta == 0 ? 0.0F : beta * widened(to);
      to = narrowed<T>(sums[row * stride + col] + before);
    }
  }
}

template <__nv_fp8_interpretation_t kFormat, class T>
void narrow_as(const Narrowing& narrowing, const CudaState& state) {
  const Matrix& m = narrowing.from;
  const NarrowMatrix& to = narrowing.to;
  const Lying<T> x{static_cast<const T*>(m.tensor.raw()) + m.offset, m.rows, m.cols, m.row_stride};
  constexpr float kGreatest = kFormat == __NV_E4M3 ? 448.0F : 57344.0F;
  const auto blocks = static_cast<unsigned>(std::clamp<std::int64_t>(
      x.rows, 1, std::min<std::int64_t>(kNarrowWork, blocks_for(x.rows, state.limits))));
  greatest_kernel<T><<<blocks, kThreads, 0, state.stream>>>(x, narrowing.work);
  scale_kernel<<<1, kThreads, 0, state.stream>>>(narrowing.work, static_cast<int>(blocks),
                                                 kGreatest, to.scale);
  if (narrowing.sums_over_rows) {
    const dim3 grid(
        static_cast<unsigned>((to.depth + kTile - 1) / kTile),
        static_cast<unsigned>(std::min<std::int64_t>((to.rows + kTile - 1) / kTile, kMostRows)));
    narrow_transposed_kernel<kFormat, T><<<grid, dim3(kTile, kTileRows), 0, state.stream>>>(
        x, to.scale, to.data, to.rows, to.depth);
  } else {
    constexpr std::int64_t kOfBlock = std::int64_t{kThreads} * kEach;
    const dim3 grid(static_cast<unsigned>((to.depth + kOfBlock - 1) / kOfBlock),
                    static_cast<unsigned>(std::min<std::int64_t>(to.rows, kMostRows)));
    narrow_kernel<kFormat, T>
        <<<grid, kThreads, 0, state.stream>>>(x, to.scale, to.data, to.rows, to.depth);
  }
}

template <class T>
void narrow_from(const Narrowing& narrowing, const CudaState& state) {
  if (narrowing.is_gradient) {
    narrow_as<__NV_E5M2, T>(narrowing, state);
  } else {
    narrow_as<__NV_E4M3, T>(narrowing, state);
  }
}

}  // namespace

void narrow(const Narrowing& narrowing, const CudaState& state) {
  with_type(narrowing.from.tensor.dtype(),
            [&](auto type) { narrow_from<typename decltype(type)::type>(narrowing, state); });
}

void add_sums(const float* sums, std::int64_t stride, float beta, const Matrix& c,
              const CudaState& state) {
  with_type(c.tensor.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    add_sums_kernel<T><<<blocks_for(c.rows, state.limits), kThreads, 0, state.stream>>>(
        sums, stride, beta, static_cast<T*>(c.tensor.raw()) + c.offset, c.rows, c.cols,
        c.row_stride);
  });
}

}  // namespace tpsim

// Kernels over independent elements: a body is called for every pack of a flat array, or for every
// pack of a matrix with its column, so that what belongs to a column is read once per thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/cuda_state.h"
#include "kernels/cuda/packs.cuh"

namespace tpsim {

inline constexpr int kElementwiseThreads = 256;

// body(Width<V>, first element), for packs of V and for the elements that are left over.
template <int V, class Body>
__global__ void __launch_bounds__(kElementwiseThreads, 4)
    flat_kernel(Body body, std::int64_t count) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t packs = count / V;
  for (std::int64_t pack = thread; pack < packs; pack += threads) body(Width<V>{}, pack * V);
  if constexpr (V > 1) {
    const std::int64_t rest = packs * V + thread;
    if (rest < count) body(Width<1>{}, rest);
  }
}

// The most blocks that are worth starting: each SM's fill, several times over.
inline unsigned blocks_for(std::int64_t blocks, const GpuLimits& limits) {
  const std::int64_t most = std::int64_t{limits.multiprocessors} * 64;
  return static_cast<unsigned>(std::max<std::int64_t>(1, std::min(blocks, most)));
}

template <class Body>
void launch_flat(const Body& body, std::int64_t count, int width, const CudaState& state) {
  if (count == 0) return;
  const std::int64_t packs = (count + width - 1) / width;
  const std::int64_t blocks = (packs + kElementwiseThreads - 1) / kElementwiseThreads;
  const unsigned grid = blocks_for(blocks, state.limits);
  if (width == kPack) {
    flat_kernel<kPack><<<grid, kElementwiseThreads, 0, state.stream>>>(body, count);
  } else {
    flat_kernel<1><<<grid, kElementwiseThreads, 0, state.stream>>>(body, count);
  }
}

// body.column(Width<V>, column) gives what the column's rows share; body.row(shared, row * cols +
// column) does one pack.
template <int V, class Body>
__global__ void __launch_bounds__(kElementwiseThreads, 4)
    matrix_kernel(Body body, std::int64_t rows, std::int64_t cols) {
  const std::int64_t column = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V;
  if (column >= cols) return;
  const auto shared = body.column(Width<V>{}, column);
  const std::int64_t step = std::int64_t{gridDim.y} * blockDim.y;
  for (std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < rows;
       row += step) {
    body.row(Width<V>{}, shared, row * cols + column);
  }
}

// Threads side by side along a row, then along the columns.
inline dim3 matrix_block(std::int64_t packs_per_row) {
  unsigned x = 1;
  while (x < kElementwiseThreads && x < packs_per_row) x *= 2;
  return {x, kElementwiseThreads / x};
}

template <class Body>
void launch_matrix(const Body& body, std::int64_t rows, std::int64_t cols, int width,
                   const CudaState& state) {
  if (rows == 0 || cols == 0) return;
  const std::int64_t packs = (cols + width - 1) / width;
  const dim3 block = matrix_block(packs);
  const auto across = static_cast<unsigned>((packs + block.x - 1) / block.x);
  const std::int64_t down = (rows + block.y - 1) / block.y;
  const std::int64_t most =
      std::max<std::int64_t>(1, std::int64_t{blocks_for(down * across, state.limits)} / across);
  const dim3 grid(across, static_cast<unsigned>(std::min<std::int64_t>({down, most, 65535})));
  if (width == kPack) {
    matrix_kernel<kPack><<<grid, block, 0, state.stream>>>(body, rows, cols);
  } else {
    matrix_kernel<1><<<grid, block, 0, state.stream>>>(body, rows, cols);
  }
}

}  // namespace tpsim

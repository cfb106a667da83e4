// Kernels over independent elements. A kernel calls a body, which reads and writes packs of a flat
// array or of a matrix. In a matrix, per-column operands are read once per thread.
//
// Each thread reads two packs before it writes the first. Full memory bandwidth needs tens of
// kilobytes in flight per SM.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/runtime/cuda_state.h"
#include "kernels/cuda/tiles/packs.cuh"

namespace tpsim {

inline constexpr int kElementwiseThreads = 256;

// Operands of a pack in bytes up to which registers hold two packs. Compilers for sm_100 use more
// registers for the same code.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
inline constexpr std::size_t kMostOfFlatPack = 48, kMostOfMatrixPack = 48;
#else
inline constexpr std::size_t kMostOfFlatPack = 128, kMostOfMatrixPack = 64;
#endif

// body.read(Width<V>, first element) loads the operands of a pack. body.write(Width<V>, operands,
// first element) computes and stores. Elements after the last whole pack are processed one by one.
template <int V, class Body>
__global__ void __launch_bounds__(kElementwiseThreads, 4)
    flat_kernel(Body body, std::int64_t count) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t packs = count / V;
  std::int64_t pack = thread;
  using Operands = decltype(body.read(Width<V>{}, pack));
  if constexpr (sizeof(Operands) <= kMostOfFlatPack) {
    for (; pack + threads < packs; pack += 2 * threads) {
      const std::int64_t at = pack * V, next = (pack + threads) * V;
      const Operands one = body.read(Width<V>{}, at);
      const Operands other = body.read(Width<V>{}, next);
      body.write(Width<V>{}, one, at);
      body.write(Width<V>{}, other, next);
    }
  }
  for (; pack < packs; pack += threads) {
    body.write(Width<V>{}, body.read(Width<V>{}, pack * V), pack * V);
  }
  if constexpr (V > 1) {
    const std::int64_t rest = packs * V + thread;
    if (rest < count) body.write(Width<1>{}, body.read(Width<1>{}, rest), rest);
  }
}

// Packs of two operands.
template <class First, class Second, int V>
struct TwoPacks {
  Raw<First, V> first;
  Raw<Second, V> second;
};

// A body: to = of(from), elementwise.
template <class From, class To, class Of>
struct MapBody {
  static constexpr int kWidth = kPackOf<From, To>;
  const From* from;
  To* to;
  Of of;
  template <int V>
  __device__ Raw<From, V> read(Width<V>, std::int64_t at) const {
    return raw_at<From, V>(from + at);
  }
  template <int V>
  __device__ void write(Width<V>, const Raw<From, V>& pack, std::int64_t at) const {
    Raw<To, V> values;
#pragma unroll
    for (int i = 0; i < V; ++i) values.set(i, of(pack[i]));
    values.write(to + at);
  }
};

// A body: into = of(into, x), elementwise.
template <class From, class To, class Of>
struct UpdateBody {
  static constexpr int kWidth = kPackOf<From, To>;
  const From* x;
  To* into;
  Of of;
  template <int V>
  __device__ TwoPacks<From, To, V> read(Width<V>, std::int64_t at) const {
    return {raw_at<From, V>(x + at), raw_at<To, V>(into + at)};
  }
  template <int V>
  __device__ void write(Width<V>, TwoPacks<From, To, V> packs, std::int64_t at) const {
    auto& [more, values] = packs;
#pragma unroll
    for (int i = 0; i < V; ++i) values.set(i, of(values[i], more[i]));
    values.write(into + at);
  }
};

// Returns the number of blocks, limited to several times the number that fills the SMs.
inline unsigned blocks_for(std::int64_t blocks, const GpuLimits& limits) {
  const std::int64_t most = std::int64_t{limits.multiprocessors} * 64;
  return static_cast<unsigned>(std::max<std::int64_t>(1, std::min(blocks, most)));
}

// Launches the body in packs of Body::kWidth if `packed`, else per element.
template <class Body>
void launch_flat(const Body& body, std::int64_t count, bool packed, const CudaState& state) {
  if (count == 0) return;
  constexpr std::int64_t kPacksEach = 2 * kElementwiseThreads;
  const std::int64_t packs = count / (packed ? Body::kWidth : 1) + 1;
  const unsigned grid = blocks_for((packs + kPacksEach - 1) / kPacksEach, state.limits);
  if (packed) {
    flat_kernel<Body::kWidth><<<grid, kElementwiseThreads, 0, state.stream>>>(body, count);
  } else {
    flat_kernel<1><<<grid, kElementwiseThreads, 0, state.stream>>>(body, count);
  }
}

// Launches Body<From, To, Of> over all elements of two tensors, with equal or different dtypes.
template <template <class, class, class> class Body, class Of>
void launch_flat(const Tensor& from, const Tensor& to, const Of& of, const CudaState& state) {
  const bool packed = pack_width(kPack, {from, to}) == kPack;
  with_type(to.dtype(), [&]<class T>(Type<T>) {
    launch_flat(Body<T, T, Of>{elements_of(from), elements_of(to), of}, to.elements(), packed,
                state);
  });
}
template <template <class, class, class> class Body, class Of>
void launch_mixed(const Tensor& from, const Tensor& to, const Of& of, const CudaState& state) {
  const bool packed = pack_width(kPack, {from, to}) == kPack;
  with_two_types(from.dtype(), to.dtype(), [&]<class From, class To>(Type<From>, Type<To>) {
    launch_flat(Body<From, To, Of>{elements_of(from), elements_of(to), of}, to.elements(), packed,
                state);
  });
}

// body.column(Width<V>, column) loads the operands of a column. body.read(Width<V>, shared, row *
// cols + column) loads a pack. body.write(Width<V>, shared, operands, row * cols + column) computes
// and stores.
template <int V, class Body>
__global__ void __launch_bounds__(kElementwiseThreads, 4)
    matrix_kernel(Body body, std::int64_t rows, std::int64_t cols) {
  const std::int64_t column = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V;
  if (column >= cols) return;
  const auto shared = body.column(Width<V>{}, column);
  const std::int64_t step = std::int64_t{gridDim.y} * blockDim.y;
  std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  using Operands = decltype(body.read(Width<V>{}, shared, row));
  if constexpr (sizeof(Operands) <= kMostOfMatrixPack) {
    for (; row + step < rows; row += 2 * step) {
      const std::int64_t at = row * cols + column, next = at + step * cols;
      const Operands one = body.read(Width<V>{}, shared, at);
      const Operands other = body.read(Width<V>{}, shared, next);
      body.write(Width<V>{}, shared, one, at);
      body.write(Width<V>{}, shared, other, next);
    }
  }
  for (; row < rows; row += step) {
    const std::int64_t at = row * cols + column;
    body.write(Width<V>{}, shared, body.read(Width<V>{}, shared, at), at);
  }
}

// Returns the block shape: x covers the packs of a row, and the remaining threads cover more rows.
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
  const std::int64_t down = (rows + 2 * block.y - 1) / (2 * block.y);
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

// Helpers for kernels with one block per row, which keep the row in registers between passes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/elementwise/block_sums.cuh"
#include "kernels/cuda/tiles/packs.cuh"

namespace tpsim {

inline constexpr int kRowThreads = 512;  // maximum; leaves 128 registers per thread

// Returns the number of threads, in whole warps, for a row of `items` items with up to `each` items
// per thread.
inline int row_threads(std::int64_t items, std::int64_t each) {
  const std::int64_t threads = (items + each - 1) / each;
  return static_cast<int>(
      std::clamp<std::int64_t>((threads + kWarp - 1) / kWarp * kWarp, kWarp, kRowThreads));
}

// Largest row length, in elements, for `packs` packs per thread.
constexpr std::int64_t row_capacity(int packs, int threads = kRowThreads) {
  return std::int64_t{threads} * packs * kPack;
}

// First element of this thread's p-th pack of a row. Adjacent threads have adjacent packs.
__device__ inline std::int64_t pack_begin(int p) {
  return (std::int64_t{p} * blockDim.x + threadIdx.x) * kPack;
}

// exp with the precision of T.
template <class T>
__device__ inline float exp_for(float x) {
  if constexpr (sizeof(T) == 4) {
    return expf(x);
  } else {
    return __expf(x);
  }
}

}  // namespace tpsim

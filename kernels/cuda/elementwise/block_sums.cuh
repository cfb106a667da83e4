// Sums and maxima over the threads of a block, in a fixed order: first inside each warp by
// shuffles, then over the warps. All threads receive the result. The number of threads must be a
// multiple of 32.
#pragma once

#include <cuda_runtime.h>

namespace tpsim {

inline constexpr int kWarp = 32;

struct SumOf {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct MostOf {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct MaxOf {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <class T, class Combine>
__device__ inline T warp_reduced(T x, Combine combine) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    x = combine(x, __shfl_xor_sync(0xffffffffU, x, offset));
  }
  return x;
}

// N reductions with the same two barriers. The first barrier allows a call to reuse the shared
// memory of the previous call.
template <int N, class T, class Combine>
__device__ inline void block_reduce(T (&x)[N], Combine combine) {
  __shared__ T of_warp[N][kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = warp_reduced(x[i], combine);
  __syncthreads();  // results of the previous call are no longer read
  if (lane == 0) {
#pragma unroll
    for (int i = 0; i < N; ++i) of_warp[i][warp] = x[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; ++i) {
    T mine = of_warp[i][0];
    for (int w = 1; w < warps; ++w) mine = combine(mine, of_warp[i][w]);
    x[i] = mine;
  }
}

}  // namespace tpsim

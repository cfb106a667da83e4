// Shared parts of the flash attention kernels: memory layout of heads, and tiles.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/runtime/cuda_state.h"
#include "kernels/cuda/tiles/fragments.h"
#include "kernels/cuda/tiles/mma.cuh"
#include "kernels/cuda/tiles/packs.cuh"
#include "kernels/ops.h"

namespace tpsim {

inline constexpr float kLog2E = 1.4426950408889634F;
inline constexpr float kLn2 = 0.6931471805599453F;

// The vectors of all samples and heads. at() returns the first vector of one head.
template <class T>
struct HeadArray {
  T* data = nullptr;
  std::int64_t position = 0, sample = 0, head = 0;  // strides in elements

  __device__ T* at(std::int64_t b, std::int64_t h) const { return data + b * sample + h * head; }
};

template <class T>
HeadArray<T> head_array(const Heads& x) {
  return {static_cast<T*>(x.tensor.raw()) + x.offset, x.position_stride, x.sample_stride,
          x.head_stride};
}

// Number of rows of a head, and elements per row.
struct HeadExtent {
  int rows, head_dim;
};

struct FlashSizes {
  int seq = 0, keys = 0, heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 1;
  // Used only by the kernels without tensor cores.
  Visibility visibility = {};
  float cap = 0;

  __device__ int first_key(int query) const {
    return static_cast<int>(visibility.first_key(query + earlier()));
  }

  // Number of keys before the first query: query q sees keys 0 .. q + earlier().
  __device__ int earlier() const { return keys - seq; }
  __device__ HeadExtent queries() const { return {seq, head_dim}; }

  __device__ int group() const { return heads / kv_heads; }
  // First index of a head's entries in per-query arrays [batch, heads, seq].
  __device__ std::int64_t row(std::int64_t b, std::int64_t h) const {
    return (b * heads + h) * seq;
  }
};

template <class Flash>
FlashSizes flash_sizes(const Flash& op) {
  const AttentionDims& d = op.dims;
  return {static_cast<int>(d.seq),
          static_cast<int>(key_count(d)),
          static_cast<int>(d.heads),
          static_cast<int>(d.kv_heads),
          static_cast<int>(d.head_dim),
          op.scale,
          op.visibility,
          op.cap};
}

template <class T>
struct FlashForwardArgs {
  FlashSizes sizes;
  HeadArray<const T> q, k, v;
  HeadArray<T> o;
  float* log_sum;
  const float* slopes;  // null without ALiBi
};

template <class T>
struct FlashBackwardArgs {
  FlashSizes sizes;
  HeadArray<const T> q, k, v, o, d_o;
  HeadArray<T> dq, dk, dv;
  const float* log_sum;
  const float* slopes;
  float* along;  // [batch, heads, seq]: o . d_o of each query
};

template <class T>
FlashForwardArgs<T> forward_args(const FlashForward& op) {
  return {flash_sizes(op),
          head_array<const T>(op.q),
          head_array<const T>(op.k),
          head_array<const T>(op.v),
          head_array<T>(op.o),
          op.log_sum.data<float>(),
          op.slopes.defined() ? op.slopes.data<float>() : nullptr};
}

template <class T>
FlashBackwardArgs<T> backward_args(const FlashBackward& op, float* along) {
  return {flash_sizes(op),
          head_array<const T>(op.q),
          head_array<const T>(op.k),
          head_array<const T>(op.v),
          head_array<const T>(op.o),
          head_array<const T>(op.d_o),
          head_array<T>(op.dq),
          head_array<T>(op.dk),
          head_array<T>(op.dv),
          op.log_sum.data<float>(),
          op.slopes.defined() ? op.slopes.data<float>() : nullptr,
          along};
}

// Flash attention without tensor cores, for every dtype, head_dim and layout.
void flash_forward_plainly(const FlashForward& op, CudaState& state);
void flash_backward_plainly(const FlashBackward& op, float* along, CudaState& state);
// Integers that flash_along() sets to 0; at most as many as o has elements.
struct Cleared {
  int* numbers = nullptr;
  std::int64_t count = 0;
};
// Computes along [batch, heads, seq] = o . d_o for every query, and clears `cleared`.
void flash_along(const FlashBackward& op, float* along, Cleared cleared, CudaState& state);

// Starts copying kRows rows of one head, from row `first`, to a tile of D columns in shared memory.
// Rows from `rows` on and columns from `head_dim` on become zero. All threads of the block call it.
template <class T, int D, int kRows, int kThreads>
__device__ inline void fetch_tile(uint4* tile, const T* head, std::int64_t position_stride,
                                  int first, int rows, int head_dim) {
  constexpr int kChunks = D / kChunk, kStep = kThreads / kChunks;
  static_assert(kThreads % kChunks == 0 && kRows % kStep == 0, "an equal share for every thread");
  static_assert(kStep % 8 == 0, "rows that lie alike");
  const int row = static_cast<int>(threadIdx.x) / kChunks;
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
  const bool exists = chunk * kChunk < head_dim;
  const T* from = head + (first + row) * position_stride + chunk * kChunk;
  uint4* to = tile + swizzled(row, chunk, kChunks);
#pragma unroll
  for (int i = 0; i < kRows / kStep; ++i) {
    const bool present = exists && first + row + i * kStep < rows;
    copy_async(to + i * kStep * kChunks, present ? from : head, present);
    from += kStep * position_stride;
  }
}

// Stores two adjacent elements.
template <class T>
__device__ inline void store_pair(T* to, float first, float second) {
  *reinterpret_cast<unsigned*>(to) = packed(first, second, T{});
}
__device__ inline void store_pair(float* to, float first, float second) {
  *reinterpret_cast<float2*>(to) = float2{first, second};
}

// Writes the 16 x D results of a warp to the rows of a head from `first` on. factor[0] and
// factor[1] scale the two rows of a lane.
template <class T, int D>
__device__ inline void store_result(const float (&sums)[D / 8][4], const float (&factor)[2],
                                    T* head, std::int64_t position_stride, int first,
                                    HeadExtent extent) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + result_row(lane, 2 * half);
    if (row >= extent.rows) continue;
#pragma unroll
    for (int d = 0; d < D / 8; ++d) {
      const int column = d * 8 + result_col(lane, 0);
      if (column >= extent.head_dim) continue;
      store_pair(head + row * position_stride + column, sums[d][2 * half] * factor[half],
                 sums[d][2 * half + 1] * factor[half]);
    }
  }
}

// Calls launch(Type<T>) for a 16-bit dtype.
template <class Launch>
void with_half_type(DType dtype, Launch launch) {
  if (dtype == DType::kBFloat16) {
    launch(Type<__nv_bfloat16>{});
  } else {
    launch(Type<__half>{});
  }
}

// Calls launch(Type<T>, Width<D>) for tiles of 64 or 128 columns.
template <class Launch>
void with_tiles(DType dtype, std::int64_t head_dim, Launch launch) {
  with_half_type(dtype, [&](auto type) {
    if (head_dim <= 64) {
      launch(type, Width<64>{});
    } else {
      launch(type, Width<128>{});
    }
  });
}

}  // namespace tpsim

// Access to the vectors of heads, for kernels between the projections and the scores. Kernels use
// one warp per vector or one block per token.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "kernels/cuda/elementwise/block_sums.cuh"
#include "kernels/cuda/tiles/packs.cuh"
#include "kernels/ops.h"

namespace tpsim {

inline constexpr int kHeadThreads = 256;
inline constexpr int kHeadWarps = kHeadThreads / kWarp;

// Vectors of all heads of all tokens; row = (position * batch + sample) * heads + head.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t batch, position_stride, sample_stride, head_stride;
  std::int64_t tokens, heads, dim;

  __device__ std::int64_t token_begin(std::int64_t token) const {
    return token / batch * position_stride + token % batch * sample_stride;
  }
  __device__ T* row(std::int64_t i) const {
    return data + token_begin(i / heads) + i % heads * head_stride;
  }
};

template <class T>
HeadRows<T> head_rows(const Heads& x, const AttentionDims& d, std::int64_t heads) {
  return {elements_of<T>(x.tensor) + x.offset,
          d.batch,
          x.position_stride,
          x.sample_stride,
          x.head_stride,
          d.seq * d.batch,
          heads,
          d.head_dim};
}

// Returns whether vectors of `width` elements and the tensors `others` can be accessed in packs:
// all packs are aligned to 16 bytes.
inline bool in_packs(const Heads& x, std::int64_t width, std::initializer_list<Tensor> others) {
  bool packed = pack_width(width, {x.tensor}) == kPack && pack_width(kPack, others) == kPack;
  for (const std::int64_t stride : {x.offset, x.position_stride, x.sample_stride, x.head_stride}) {
    packed = packed && stride % kPack == 0;
  }
  return packed;
}

}  // namespace tpsim

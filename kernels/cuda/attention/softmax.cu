// Causal softmax of attention scores, one block per row. Masked scores are not read. Rows with
// windows or chunks are read element by element.
#include "kernels/cuda/elementwise/row_block.cuh"
#include "kernels/cuda/runtime/cuda_ops.h"

namespace tpsim {
namespace {

template <class T>
struct ScoreRows {
  T* scores;  // probabilities, in the backward kernels
  T* dscores;
  const float* slopes;  // null without ALiBi
  std::int64_t heads;
  int queries, keys;
  float scale;
  Visibility visibility;

  __device__ T* row(T* matrix) const { return matrix + std::int64_t{blockIdx.x} * keys; }
  __device__ int visible() const {
    const int query = static_cast<int>(blockIdx.x % static_cast<unsigned>(queries));
    return query + 1 + keys - queries;
  }
  __device__ int first() const { return static_cast<int>(visibility.first_key(visible() - 1)); }
  __device__ float slope() const {
    return slopes != nullptr ? slopes[blockIdx.x / queries % heads] : 0.0F;
  }
};

template <class T, int P>
__global__ void __launch_bounds__(kRowThreads) softmax_forward_kernel(const ScoreRows<T> a) {
  const int visible = a.visible();
  const float slope = a.slope();
  T* const row = a.row(a.scores);
  float x[P][kPack];
  float reduced[1] = {-INFINITY};
#pragma unroll
  for (int p = 0; p < P; ++p) {
    const int at = static_cast<int>(pack_begin(p));
    Raw<T, kPack> raw;
    if (at < visible) raw.read(row + at);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const bool seen = at + i < visible;
      x[p][i] = seen ? a.scale * raw[i] + slope * static_cast<float>(at + i) : -INFINITY;
      reduced[0] = fmaxf(reduced[0], x[p][i]);
    }
  }
  block_reduce(reduced, MaxOf());
  const float max = reduced[0];
  reduced[0] = 0;
#pragma unroll
  for (int p = 0; p < P; ++p) {
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      x[p][i] = exp_for<T>(x[p][i] - max);
      reduced[0] += x[p][i];
    }
  }
  block_reduce(reduced, SumOf());
  const float inverse = 1.0F / reduced[0];
#pragma unroll
  for (int p = 0; p < P; ++p) {
    const int at = static_cast<int>(pack_begin(p));
    if (at >= a.keys) continue;
    Raw<T, kPack> raw;
#pragma unroll
    for (int i = 0; i < kPack; ++i) raw.set(i, x[p][i] * inverse);
    raw.write(row + at);
  }
}

// Fallback kernel for any number of keys and any alignment. Each pass reads the row from memory.
template <class T>
__global__ void __launch_bounds__(kRowThreads) softmax_forward_any_kernel(const ScoreRows<T> a) {
  const int visible = a.visible();
  const float slope = a.slope();
  T* const row = a.row(a.scores);
  const int first = a.first();
  const int begin = static_cast<int>(threadIdx.x);
  const int step = static_cast<int>(blockDim.x);
  const auto score = [&](int k) {
    return a.scale * widened(row[k]) + slope * static_cast<float>(k);
  };
  float reduced[1] = {-INFINITY};
  for (int k = first + begin; k < visible; k += step) reduced[0] = fmaxf(reduced[0], score(k));
  block_reduce(reduced, MaxOf());
  const float max = reduced[0];
  reduced[0] = 0;
  for (int k = first + begin; k < visible; k += step) reduced[0] += exp_for<T>(score(k) - max);
  block_reduce(reduced, SumOf());
  const float inverse = 1.0F / reduced[0];
  for (int k = begin; k < a.keys; k += step) {
    row[k] = narrowed<T>(k >= first && k < visible ? exp_for<T>(score(k) - max) * inverse : 0.0F);
  }
}

template <class T, int P>
__global__ void __launch_bounds__(kRowThreads) softmax_backward_kernel(const ScoreRows<T> a) {
  const int visible = a.visible();
  const T* const probs = a.row(a.scores);
  T* const slopes = a.row(a.dscores);
  Raw<T, kPack> prob[P], slope[P];
  float along[1] = {0};
#pragma unroll
  for (int p = 0; p < P; ++p) {
    const int at = static_cast<int>(pack_begin(p));
    if (at < visible) {
      prob[p].read(probs + at);
      slope[p].read(slopes + at);
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      if (at + i < visible) along[0] += prob[p][i] * slope[p][i];
    }
  }
  block_reduce(along, SumOf());
#pragma unroll
  for (int p = 0; p < P; ++p) {
    const int at = static_cast<int>(pack_begin(p));
    if (at >= a.keys) continue;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const bool seen = at + i < visible;
      slope[p].set(i, seen ? a.scale * prob[p][i] * (slope[p][i] - along[0]) : 0.0F);
    }
    slope[p].write(slopes + at);
  }
}

template <class T>
__global__ void __launch_bounds__(kRowThreads) softmax_backward_any_kernel(const ScoreRows<T> a) {
  const int visible = a.visible();
  const T* const probs = a.row(a.scores);
  T* const slopes = a.row(a.dscores);
  const int begin = static_cast<int>(threadIdx.x);
  const int step = static_cast<int>(blockDim.x);
  float along[1] = {0};
  for (int k = begin; k < visible; k += step) along[0] += widened(probs[k]) * widened(slopes[k]);
  block_reduce(along, SumOf());
  for (int k = begin; k < a.keys; k += step) {
    const float prob = k < visible ? widened(probs[k]) : 0.0F;
    slopes[k] = narrowed<T>(k < visible ? a.scale * prob * (widened(slopes[k]) - along[0]) : 0.0F);
  }
}

// Calls `launch` for the kernel of this row length: packs in registers if they fit, else single
// elements.
template <class Launch>
void with_row_kernel(std::int64_t keys, bool packed, Launch launch) {
  if (packed && keys <= row_capacity(2)) {
    launch(Width<2>{}, row_threads(keys / kPack, 2));
  } else if (packed && keys <= row_capacity(4)) {
    launch(Width<4>{}, row_threads(keys / kPack, 4));
  } else {
    launch(Width<0>{}, row_threads(keys, 4));
  }
}

}  // namespace

void compute(const SoftmaxForward& op, CudaState& state) {
  const Shape& shape = op.scores.shape();
  const auto rows = static_cast<unsigned>(op.scores.rows());
  with_type(op.scores.dtype(), [&]<class T>(Type<T>) {
    const ScoreRows<T> a{elements_of(op.scores),
                         nullptr,
                         elements_of(op.slopes),
                         op.heads,
                         static_cast<int>(shape[1]),
                         static_cast<int>(shape[2]),
                         op.scale,
                         op.visibility};
    TPSIM_CHECK(!op.sinks.defined(), "scores without sinks");
    const bool packed = !op.visibility.is_limited() && pack_width(shape[2], {op.scores}) == kPack;
    with_row_kernel(shape[2], packed, [&](auto packs, int threads) {
      if constexpr (packs.value > 0) {
        softmax_forward_kernel<T, packs.value><<<rows, threads, 0, state.stream>>>(a);
      } else {
        softmax_forward_any_kernel<T><<<rows, threads, 0, state.stream>>>(a);
      }
    });
  });
}

void compute(const SoftmaxBackward& op, CudaState& state) {
  const Shape& shape = op.probs.shape();
  const auto rows = static_cast<unsigned>(op.probs.rows());
  with_type(op.probs.dtype(), [&]<class T>(Type<T>) {
    const ScoreRows<T> a{elements_of(op.probs),      elements_of(op.dprobs),     nullptr,  1,
                         static_cast<int>(shape[1]), static_cast<int>(shape[2]), op.scale, {}};
    TPSIM_CHECK(!op.dsinks.defined(), "scores without sinks");
    const bool packed = pack_width(shape[2], {op.probs, op.dprobs}) == kPack;
    with_row_kernel(shape[2], packed, [&](auto packs, int threads) {
      if constexpr (packs.value > 0) {
        softmax_backward_kernel<T, packs.value><<<rows, threads, 0, state.stream>>>(a);
      } else {
        softmax_backward_any_kernel<T><<<rows, threads, 0, state.stream>>>(a);
      }
    });
  });
}

}  // namespace tpsim

// Norms over single heads: a warp takes a head's vector.
#include <algorithm>

#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/elementwise/column_sums.cuh"
#include "kernels/cuda/runtime/cuda_ops.h"

namespace tpsim {
namespace {

// Of a norm over the heads: gain of element d of head h.
template <class T>
struct HeadGain {
  const T* gain;  // null: ones
  bool of_each_head;
  float offset;

  template <int V>
  __device__ float at(const Raw<T, V>& pack, int i) const {
    return gain == nullptr ? 1.0F : pack[i] + offset;
  }
  template <int V>
  __device__ Raw<T, V> pack(std::int64_t head, std::int64_t dim, std::int64_t d) const {
    return raw_or_zeros<T, V>(gain, (of_each_head ? head * dim : 0) + d);
  }
};

template <class T, class Norm>
HeadGain<T> head_gain(const Norm& op) {
  return {elements_of(op.gain), op.gain.defined() && op.gain.elements() > op.dims.head_dim,
          op.offset};
}

struct HeadStatistics {
  float mean, rstd;
};

// Of the vector at `x`, by a whole warp: the average first, then what is left of the squares.
template <class T, int V>
__device__ HeadStatistics head_statistics(const T* x, std::int64_t dim, bool centred,
                                          float epsilon) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float mean = 0;
  if (centred) {
    for (std::int64_t d = lane * V; d < dim; d += kWarp * V) {
      const Raw<T, V> pack = raw_at<T, V>(x + d);
#pragma unroll
      for (int i = 0; i < V; ++i) mean += pack[i];
    }
    mean = warp_reduced(mean, SumOf{}) / static_cast<float>(dim);
  }
  float squares = 0;
  for (std::int64_t d = lane * V; d < dim; d += kWarp * V) {
    const Raw<T, V> pack = raw_at<T, V>(x + d);
#pragma unroll
    for (int i = 0; i < V; ++i) squares += (pack[i] - mean) * (pack[i] - mean);
  }
  squares = warp_reduced(squares, SumOf{});
  return {mean, 1.0F / sqrtf(squares / static_cast<float>(dim) + epsilon)};
}

template <class T>
struct HeadNormRows {
  HeadRows<T> x;
  T* raw;
  HeadGain<T> gain;
  bool centred;
  float epsilon;
};

template <class T, int V>
__global__ void __launch_bounds__(kHeadThreads) head_norm_forward_kernel(const HeadNormRows<T> a) {
  const std::int64_t rows = a.x.tokens * a.x.heads, dim = a.x.dim;
  const std::int64_t row =
      std::int64_t{blockIdx.x} * kHeadWarps + static_cast<int>(threadIdx.x) / kWarp;
  if (row >= rows) return;
  T* const x = a.x.row(row);
  const HeadStatistics s = head_statistics<T, V>(x, dim, a.centred, a.epsilon);
  for (std::int64_t d = static_cast<int>(threadIdx.x) % kWarp * V; d < dim; d += kWarp * V) {
    Raw<T, V> pack = raw_at<T, V>(x + d);
    pack.write(a.raw + row * dim + d);
    const Raw<T, V> gain = a.gain.template pack<V>(row % a.x.heads, dim, d);
#pragma unroll
    for (int i = 0; i < V; ++i) pack.set(i, (pack[i] - s.mean) * s.rstd * a.gain.at(gain, i));
    pack.write(x + d);
  }
}

template <class T, int V>
__global__ void __launch_bounds__(kHeadThreads)
    head_statistics_kernel(const HeadNormRows<T> a, HeadStatistics* statistics) {
  const std::int64_t row =
      std::int64_t{blockIdx.x} * kHeadWarps + static_cast<int>(threadIdx.x) / kWarp;
  if (row >= a.x.tokens * a.x.heads) return;
  const HeadStatistics s =
      head_statistics<T, V>(a.raw + row * a.x.dim, a.x.dim, a.centred, a.epsilon);
  if (threadIdx.x % kWarp == 0) statistics[row] = s;
}

// partial[piece][element of the gain], of the piece's tokens in order.
template <class T>
__global__ void __launch_bounds__(kHeadThreads)
    head_gain_gradient_kernel(const HeadNormRows<T> a, const HeadStatistics* statistics,
                              std::int64_t tokens_each, float* partial) {
  const std::int64_t gains = a.gain.of_each_head ? a.x.heads * a.x.dim : a.x.dim;
  const std::int64_t g = std::int64_t{blockIdx.x} * kHeadThreads + threadIdx.x;
  if (g >= gains) return;
  const std::int64_t d = g % a.x.dim;
  const std::int64_t first = a.gain.of_each_head ? g / a.x.dim : 0;
  const std::int64_t last = a.gain.of_each_head ? first + 1 : a.x.heads;
  const std::int64_t begin = blockIdx.y * tokens_each;
  const std::int64_t end = begin + tokens_each < a.x.tokens ? begin + tokens_each : a.x.tokens;
  float sum = 0;
  for (std::int64_t token = begin; token < end; ++token) {
    // One division for a token: one for each head makes the kernel spill.
    const T* dy = a.x.data + a.x.token_begin(token) + first * a.x.head_stride + d;
    for (std::int64_t head = first; head < last; ++head) {
      const std::int64_t row = token * a.x.heads + head;
      const HeadStatistics s = statistics[row];
      const float xhat = (widened(a.raw[row * a.x.dim + d]) - s.mean) * s.rstd;
      sum += widened(*dy) * xhat;
      dy += a.x.head_stride;
    }
  }
  partial[blockIdx.y * gains + g] = sum;
}

template <class T, int V>
__global__ void __launch_bounds__(kHeadThreads)
    head_norm_backward_kernel(const HeadNormRows<T> a, const HeadStatistics* statistics) {
  const std::int64_t dim = a.x.dim;
  const std::int64_t row =
      std::int64_t{blockIdx.x} * kHeadWarps + static_cast<int>(threadIdx.x) / kWarp;
  if (row >= a.x.tokens * a.x.heads) return;
  T* const dx = a.x.row(row);
  const T* const raw = a.raw + row * dim;
  const HeadStatistics s = statistics[row];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float average = 0, along = 0;
  for (std::int64_t d = lane * V; d < dim; d += kWarp * V) {
    const Raw<T, V> dy = raw_at<T, V>(dx + d), x = raw_at<T, V>(raw + d);
    const Raw<T, V> gain = a.gain.template pack<V>(row % a.x.heads, dim, d);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float slope = dy[i] * a.gain.at(gain, i);
      average += slope;
      along += slope * (x[i] - s.mean) * s.rstd;
    }
  }
  average = a.centred ? warp_reduced(average, SumOf{}) / static_cast<float>(dim) : 0.0F;
  along = warp_reduced(along, SumOf{}) / static_cast<float>(dim);
  for (std::int64_t d = lane * V; d < dim; d += kWarp * V) {
    Raw<T, V> pack = raw_at<T, V>(dx + d);
    const Raw<T, V> x = raw_at<T, V>(raw + d);
    const Raw<T, V> gain = a.gain.template pack<V>(row % a.x.heads, dim, d);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float xhat = (x[i] - s.mean) * s.rstd;
      pack.set(i, s.rstd * (pack[i] * a.gain.at(gain, i) - average - xhat * along));
    }
    pack.write(dx + d);
  }
}

unsigned blocks_of_rows(const AttentionDims& d) {
  return static_cast<unsigned>((d.seq * d.batch * d.heads + kHeadWarps - 1) / kHeadWarps);
}

// Where the gradient of the gain is summed: statistics of all rows, then sums of pieces of tokens.
template <class T>
void add_gain_gradient(const HeadNormBackward& op, const HeadNormRows<T>& a, std::int64_t pieces,
                       const HeadStatistics* statistics, float* partial, const CudaState& state) {
  const std::int64_t gains = op.gain.elements();
  const std::int64_t each = (a.x.tokens + pieces - 1) / pieces;
  const dim3 grid(static_cast<unsigned>((gains + kHeadThreads - 1) / kHeadThreads),
                  static_cast<unsigned>(pieces));
  head_gain_gradient_kernel<T>
      <<<grid, kHeadThreads, 0, state.stream>>>(a, statistics, each, partial);
  add_partial_sums({partial, pieces, gains, gains}, any_floats(op.dgain), state);
}

}  // namespace

void compute(const HeadNormForward& op, CudaState& state) {
  const bool packed = in_packs(op.x, op.dims.head_dim, {op.gain, op.raw});
  with_type_and_width(
      op.x.tensor.dtype(), packed ? kPack : 1, [&]<class T, int V>(Type<T>, Width<V>) {
        const HeadNormRows<T> a{head_rows<T>(op.x, op.dims, op.dims.heads), elements_of(op.raw),
                                head_gain<T>(op), op.kind == NormKind::kLayerNorm, op.epsilon};
        head_norm_forward_kernel<T, V>
            <<<blocks_of_rows(op.dims), kHeadThreads, 0, state.stream>>>(a);
      });
}

void compute(const HeadNormBackward& op, CudaState& state) {
  constexpr std::int64_t kMostPieces = 256;
  const bool packed = in_packs(op.dx, op.dims.head_dim, {op.gain, op.raw});
  const std::int64_t tokens = op.dims.seq * op.dims.batch, rows = tokens * op.dims.heads;
  const std::int64_t pieces = std::min(tokens, kMostPieces);
  const std::int64_t gains = op.gain.defined() ? op.gain.elements() : 0;
  auto* const partial = state.scratch.array<float>(pieces * gains + 2 * rows);
  auto* const statistics = reinterpret_cast<HeadStatistics*>(partial + pieces * gains);
  with_type_and_width(
      op.dx.tensor.dtype(), packed ? kPack : 1, [&]<class T, int V>(Type<T>, Width<V>) {
        const HeadNormRows<T> a{head_rows<T>(op.dx, op.dims, op.dims.heads), elements_of(op.raw),
                                head_gain<T>(op), op.kind == NormKind::kLayerNorm, op.epsilon};
        const unsigned blocks = blocks_of_rows(op.dims);
        head_statistics_kernel<T, V><<<blocks, kHeadThreads, 0, state.stream>>>(a, statistics);
        if (gains > 0 && op.dgain.defined()) {
          add_gain_gradient(op, a, pieces, statistics, partial, state);
        }
        head_norm_backward_kernel<T, V><<<blocks, kHeadThreads, 0, state.stream>>>(a, statistics);
      });
}

}  // namespace tpsim

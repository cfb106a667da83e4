// Norms over single heads: one warp per head's vector.
#include <algorithm>

#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/elementwise/column_sums.cuh"
#include "kernels/cuda/runtime/cuda_ops.h"

namespace tpsim {
namespace {

// The gain of a norm over heads.
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

// Returns the statistics of the vector at `x`. All lanes of a warp call this function. Two passes:
// the mean, then the mean of the centered squares.
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

// Writes partial[piece][element of the gain]. Grid: (columns, pieces of the tokens, heads if each
// has its own gain). Adjacent threads process adjacent packs of columns. The block consists of
// several strands of such threads. Each strand sums a subset of the vectors, and the sums of the
// strands are added in a fixed order.
template <class T, int V>
__global__ void __launch_bounds__(kHeadThreads)
    head_gain_gradient_kernel(const HeadNormRows<T> a, const HeadStatistics* statistics,
                              int tokens_each, float* partial) {
  __shared__ float strand_sums[kHeadThreads * V];
  const int heads = static_cast<int>(a.x.heads), dim = static_cast<int>(a.x.dim);
  const int width = min(dim / V, kHeadThreads), strands = kHeadThreads / width;
  const int thread = static_cast<int>(threadIdx.x), strand = thread / width;
  const int column = (static_cast<int>(blockIdx.x) * width + thread % width) * V;
  const int first_head = a.gain.of_each_head ? static_cast<int>(blockIdx.z) : 0;
  const int heads_met = a.gain.of_each_head ? 1 : heads;
  const int begin = static_cast<int>(blockIdx.y) * tokens_each;
  const int end = min(begin + tokens_each, static_cast<int>(a.x.tokens));
  float sums[V] = {};
  if (strand < strands && column < dim) {
    int head = strand % heads_met;
    for (int token = begin + strand / heads_met; token < end;) {
      const std::int64_t row = std::int64_t{token} * heads + first_head + head;
      const HeadStatistics s = statistics[row];
      const Raw<T, V> dy = raw_at<T, V>(a.x.data + a.x.token_begin(token) +
                                        (first_head + head) * a.x.head_stride + column);
      const Raw<T, V> x = raw_at<T, V>(a.raw + row * dim + column);
#pragma unroll
      for (int i = 0; i < V; ++i) sums[i] += dy[i] * (x[i] - s.mean) * s.rstd;
      for (head += strands; head >= heads_met; head -= heads_met) ++token;
    }
  }
#pragma unroll
  for (int i = 0; i < V; ++i) strand_sums[thread * V + i] = sums[i];
  __syncthreads();
  if (strand > 0 || column >= dim) return;
  float* const out = partial + (blockIdx.y * gridDim.z + blockIdx.z) * a.x.dim + column;
#pragma unroll
  for (int i = 0; i < V; ++i) {
    float sum = 0;
    for (int n = 0; n < strands; ++n) sum += strand_sums[(n * width + thread) * V + i];
    out[i] = sum;
  }
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

// Adds the gradient of the gain: sums over each piece of the tokens, then over the pieces.
template <class T, int V>
void add_gain_gradient(const HeadNormBackward& op, const HeadNormRows<T>& a, std::int64_t pieces,
                       const HeadStatistics* statistics, float* partial, const CudaState& state) {
  TPSIM_CHECK(a.x.tokens < std::int64_t{1} << 31, "tokens that 32 bits count");
  const std::int64_t gains = op.gain.elements();
  const std::int64_t width = std::min<std::int64_t>(a.x.dim / V, kHeadThreads);
  const dim3 grid(static_cast<unsigned>((a.x.dim / V + width - 1) / width),
                  static_cast<unsigned>(pieces), static_cast<unsigned>(gains / a.x.dim));
  head_gain_gradient_kernel<T, V><<<grid, kHeadThreads, 0, state.stream>>>(
      a, statistics, static_cast<int>((a.x.tokens + pieces - 1) / pieces), partial);
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
          add_gain_gradient<T, V>(op, a, pieces, statistics, partial, state);
        }
        head_norm_backward_kernel<T, V><<<blocks, kHeadThreads, 0, state.stream>>>(a, statistics);
      });
}

}  // namespace tpsim

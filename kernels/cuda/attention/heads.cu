// What happens to single heads between the projections and the scores: norms, rotary positions,
// scales by position, sums over heads. A warp takes a head's vector, or a block a token's heads.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda/elementwise/block_sums.cuh"
#include "kernels/cuda/elementwise/column_sums.cuh"
#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/runtime/cuda_ops.h"
#include "kernels/cuda/tiles/packs.cuh"
#include "kernels/device.h"

namespace tpsim {
namespace {

constexpr int kHeadThreads = 256;
constexpr int kHeadWarps = kHeadThreads / kWarp;

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

// Every `width` elements of a vector begin at a multiple of 16 bytes.
bool in_packs(const Heads& x, std::int64_t width, std::initializer_list<Tensor> others) {
  bool packed = pack_width(width, {x.tensor}) == kPack && pack_width(kPack, others) == kPack;
  for (const std::int64_t stride : {x.offset, x.position_stride, x.sample_stride, x.head_stride}) {
    packed = packed && stride % kPack == 0;
  }
  return packed;
}

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

// x times 1 + strength ln(1 + floor((position + 1) / floor)): a block per token.
struct Temperature {
  float strength;
  std::int64_t floor, first_position;
};

template <class T>
__global__ void __launch_bounds__(kHeadThreads)
    position_scale_kernel(const HeadRows<T> x, const Temperature t) {
  const std::int64_t token = blockIdx.x;
  const std::int64_t reached = (t.first_position + token / x.batch + 1) / t.floor;
  const float factor = 1.0F + t.strength * logf(1.0F + static_cast<float>(reached));
  T* const begin = x.data + x.token_begin(token);
  for (std::int64_t i = threadIdx.x; i < x.heads * x.dim; i += kHeadThreads) {
    T& one = begin[i / x.dim * x.head_stride + i % x.dim];
    one = narrowed<T>(widened(one) * factor);
  }
}

template <class T>
__global__ void __launch_bounds__(kHeadThreads)
    head_sum_kernel(const HeadRows<T> x, const HeadRows<T> y) {
  const std::int64_t token = blockIdx.x;
  const T* const from = x.data + x.token_begin(token);
  T* const to = y.data + y.token_begin(token);
  for (std::int64_t d = threadIdx.x; d < x.dim; d += kHeadThreads) {
    float sum = 0;
    for (std::int64_t head = 0; head < x.heads; ++head)
      sum += widened(from[head * x.head_stride + d]);
    to[d] = narrowed<T>(sum);
  }
}

template <class T>
struct RotaryRows {
  HeadRows<T> x;
  const float* table;  // of the first position on: [position][cosines, then sines of the pairs]
  float sign;

  __device__ int heads() const { return static_cast<int>(x.heads); }
  __device__ int half() const { return static_cast<int>(x.dim) / 2; }
};

template <class T>
RotaryRows<T> rotary_rows(const Rotary& op, const float* table) {
  return {head_rows<T>(op.x, op.dims, op.dims.heads), table, op.inverse ? -1.0F : 1.0F};
}

// A block per token; (a, b) -> (a cos - b sin, b cos + a sin) for the pairs (d, d + half).
template <class T, int V>
__global__ void __launch_bounds__(kHeadThreads) rotary_kernel(const RotaryRows<T> a) {
  const int half = a.half(), per_head = half / V;
  T* const token = a.x.data + a.x.token_begin(blockIdx.x);
  const float* const angles = a.table + blockIdx.x / a.x.batch * 2 * half;
  for (int i = static_cast<int>(threadIdx.x); i < a.heads() * per_head; i += kHeadThreads) {
    const int d = i % per_head * V;
    T* const head = token + i / per_head * a.x.head_stride + d;
    Raw<T, V> first = raw_at<T, V>(head), second = raw_at<T, V>(head + half);
    const Raw<float, V> cosines = raw_at<float, V>(angles + d);
    const Raw<float, V> sines = raw_at<float, V>(angles + half + d);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float sine = a.sign * sines[j];
      const float x = first[j], y = second[j];
      first.set(j, x * cosines[j] - y * sine);
      second.set(j, y * cosines[j] + x * sine);
    }
    first.write(head);
    second.write(head + half);
  }
}

// What turns otherwise: by frequencies of its own, neighbours together, longer or shorter than they
// came. Angles in double for each token, its pairs shared by the heads.
template <class T>
struct FreeRotaryRows {
  RotaryRows<T> rows;  // table: frequencies [half]; null: theta's
  std::int64_t first_position;
  double theta;
  bool neighbours;
  float magnitude;
};

template <class T>
__global__ void __launch_bounds__(kHeadThreads) free_rotary_kernel(const FreeRotaryRows<T> a) {
  extern __shared__ float turns[];  // cosines, then sines
  const RotaryRows<T>& r = a.rows;
  const int half = r.half();
  const std::int64_t position = a.first_position + blockIdx.x / r.x.batch;
  for (int d = static_cast<int>(threadIdx.x); d < half; d += kHeadThreads) {
    const double frequency = r.table != nullptr ? static_cast<double>(r.table[d])
                                                : pow(a.theta, -static_cast<double>(d) / half);
    const double angle = static_cast<double>(position) * frequency;
    turns[d] = a.magnitude * static_cast<float>(cos(angle));
    turns[half + d] = a.magnitude * r.sign * static_cast<float>(sin(angle));
  }
  __syncthreads();
  T* const token = r.x.data + r.x.token_begin(blockIdx.x);
  for (int i = static_cast<int>(threadIdx.x); i < r.heads() * half; i += kHeadThreads) {
    const int d = i % half;
    T* const head = token + i / half * r.x.head_stride;
    T& first = head[a.neighbours ? 2 * d : d];
    T& second = head[a.neighbours ? 2 * d + 1 : d + half];
    const float x = widened(first), y = widened(second);
    first = narrowed<T>(x * turns[d] - y * turns[half + d]);
    second = narrowed<T>(y * turns[d] + x * turns[half + d]);
  }
}

// All positions up to the op's last on the device; angles in double on the host, since the last
// position times the first frequency has few digits left in fp32.
const RotaryTable& rotary_table(const Rotary& op, CudaState& state) {
  const std::int64_t dim = op.dims.head_dim, half = dim / 2;
  RotaryTable& table = state.rotary_tables[{op.theta, dim}];
  const std::int64_t positions = op.first_position + op.dims.seq;
  if (table.positions >= positions) return table;
  std::vector<float> angles(static_cast<std::size_t>(positions * dim));
  for (std::int64_t d = 0; d < half; ++d) {
    const double exponent = 2.0 * static_cast<double>(d) / static_cast<double>(dim);
    const double period = std::pow(static_cast<double>(op.theta), exponent);
    for (std::int64_t s = 0; s < positions; ++s) {
      const double angle = static_cast<double>(s) / period;
      angles[static_cast<std::size_t>(s * dim + d)] = static_cast<float>(std::cos(angle));
      angles[static_cast<std::size_t>(s * dim + half + d)] = static_cast<float>(std::sin(angle));
    }
  }
  if (table.data != nullptr) state.memory.give_back(table.data);
  const std::size_t bytes = angles.size() * sizeof(float);
  table = {static_cast<float*>(state.memory.acquire(static_cast<std::int64_t>(bytes))), 0};
  if (table.data == nullptr) {
    throw OutOfDeviceMemory("the GPU has no memory left for a table of rotary angles");
  }
  table.positions = positions;
  check_cuda(
      cudaMemcpyAsync(table.data, angles.data(), bytes, cudaMemcpyHostToDevice, state.stream),
      "rotary angles");
  check_cuda(cudaStreamSynchronize(state.stream), "rotary angles");  // `angles` ends here
  return table;
}

void turn_freely(const Rotary& op, CudaState& state) {
  const auto tokens = static_cast<unsigned>(op.dims.seq * op.dims.batch);
  with_type(op.x.tensor.dtype(), [&]<class T>(Type<T>) {
    const FreeRotaryRows<T> a{rotary_rows<T>(op, elements_of(op.frequencies)), op.first_position,
                              static_cast<double>(op.theta), op.neighbours, op.magnitude};
    const auto shared = static_cast<std::size_t>(op.dims.head_dim) * sizeof(float);
    free_rotary_kernel<T><<<tokens, kHeadThreads, shared, state.stream>>>(a);
  });
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

void compute(const PositionScale& op, CudaState& state) {
  const auto tokens = static_cast<unsigned>(op.dims.seq * op.dims.batch);
  with_type(op.x.tensor.dtype(), [&]<class T>(Type<T>) {
    position_scale_kernel<T><<<tokens, kHeadThreads, 0, state.stream>>>(
        head_rows<T>(op.x, op.dims, op.dims.heads),
        Temperature{op.strength, op.floor, op.first_position});
  });
}

void compute(const HeadSum& op, CudaState& state) {
  const auto tokens = static_cast<unsigned>(op.dims.seq * op.dims.batch);
  with_type(op.x.tensor.dtype(), [&]<class T>(Type<T>) {
    head_sum_kernel<T><<<tokens, kHeadThreads, 0, state.stream>>>(
        head_rows<T>(op.x, op.dims, op.dims.heads), head_rows<T>(op.y, op.dims, 1));
  });
}

void compute(const Rotary& op, CudaState& state) {
  if (op.frequencies.defined() || op.neighbours || op.magnitude != 1) return turn_freely(op, state);
  const auto tokens = static_cast<unsigned>(op.dims.seq * op.dims.batch);
  const std::int64_t dim = op.dims.head_dim;
  const float* const table = rotary_table(op, state).data + op.first_position * dim;
  const bool packed = in_packs(op.x, dim / 2, {});
  with_type_and_width(
      op.x.tensor.dtype(), packed ? kPack : 1, [&]<class T, int V>(Type<T>, Width<V>) {
        rotary_kernel<T, V><<<tokens, kHeadThreads, 0, state.stream>>>(rotary_rows<T>(op, table));
      });
}

}  // namespace tpsim

// vocab_parallel_cross_entropy, one block per row of local logits, and column sums.
#include "kernels/cuda/elementwise/column_sums.cuh"
#include "kernels/cuda/elementwise/elementwise.cuh"
#include "kernels/cuda/elementwise/row_block.cuh"
#include "kernels/cuda/runtime/cuda_ops.h"

namespace tpsim {
namespace {

template <class T>
struct LogitRows {
  T* logits;
  float* max;
  float* sums;  // [2, rows]
  const std::int32_t* labels;
  std::int64_t rows, cols, columns, vocab_begin;
  float scale;

  __device__ T* row() const { return logits + std::int64_t{blockIdx.x} * cols; }
  // Returns the label's column in this rank's vocabulary range, or -1.
  __device__ std::int64_t label_column() const { return label_column(blockIdx.x); }
  __device__ std::int64_t label_column(std::int64_t token) const {
    const std::int64_t column = labels[token] - vocab_begin;
    return column >= 0 && column < columns ? column : -1;
  }
};

// Calls visit(Width<V>, first column) for whole packs of `columns`, then for the remaining columns
// one by one.
template <int V, class Visit>
__device__ inline void for_each_column(std::int64_t columns, Visit visit) {
  const std::int64_t whole = columns / V * V;
  for (std::int64_t c = std::int64_t{threadIdx.x} * V; c < whole;
       c += std::int64_t{blockDim.x} * V) {
    visit(Width<V>{}, c);
  }
  for (std::int64_t c = whole + threadIdx.x; c < columns; c += blockDim.x) visit(Width<1>{}, c);
}

template <class T, int V>
__global__ void __launch_bounds__(kRowThreads) vocab_max_kernel(const LogitRows<T> a) {
  const T* const row = a.row();
  float max[1] = {-INFINITY};
  for_each_column<V>(a.columns, [&](auto width, std::int64_t c) {
    constexpr int kWidth = decltype(width)::value;
    const Raw<T, kWidth> x = raw_at<T, kWidth>(row + c);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) max[0] = fmaxf(max[0], x[i]);
  });
  block_reduce(max, MaxOf());
  if (threadIdx.x == 0) a.max[blockIdx.x] = max[0];
}

// Online softmax: the running maximum, and the sum of exponentials relative to it.
struct OnlineSum {
  float max = -INFINITY;
  double sum = 0;

  __device__ static float less(float a, float b) { return a == b ? 0.0F : a - b; }
  // Adds up to eight logits. Logits of -inf add nothing; NaN propagates.
  template <class T, int V>
  __device__ void add(const Raw<T, V>& x) {
    float most = max;
#pragma unroll
    for (int i = 0; i < V; ++i) most = fmaxf(most, x[i]);
    if (most > max) sum *= static_cast<double>(exp_for<T>(max - most));
    max = most;
    const float base = most == -INFINITY ? 0.0F : most;
    float more = 0;
#pragma unroll
    for (int i = 0; i < V; ++i) more += exp_for<T>(x[i] - base);
    sum += static_cast<double>(more);
  }
};

// Computes each row's maximum over this rank's columns and the sums relative to this maximum, in
// one pass.
template <class T, int V>
__global__ void __launch_bounds__(kRowThreads) vocab_online_kernel(const LogitRows<T> a) {
  const T* const row = a.row();
  OnlineSum mine;
  for_each_column<V>(a.columns, [&](auto width, std::int64_t c) {
    mine.add(raw_at<T, decltype(width)::value>(row + c));
  });
  float max[1] = {mine.max};
  block_reduce(max, MaxOf());
  double total[1] = {mine.sum * static_cast<double>(exp_for<T>(OnlineSum::less(mine.max, max[0])))};
  block_reduce(total, SumOf());
  if (threadIdx.x != 0) return;
  const std::int64_t label = a.label_column();
  a.max[blockIdx.x] = max[0];
  a.sums[blockIdx.x] = static_cast<float>(total[0]);
  a.sums[a.rows + blockIdx.x] = label >= 0 ? widened(row[label]) - max[0] : 0.0F;
}

__global__ void __launch_bounds__(kElementwiseThreads)
    vocab_rescale_kernel(const float* own, const LogitRows<float> a) {
  const std::int64_t t = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t >= a.rows || own[t] == a.max[t]) return;
  a.sums[t] *= expf(own[t] - a.max[t]);
  if (a.label_column(t) >= 0) a.sums[a.rows + t] += own[t] - a.max[t];
}

// Sums up to eight exponentials in fp32, and adds these sums in double, because a vocabulary has
// many columns.
template <class T, int V>
__global__ void __launch_bounds__(kRowThreads) vocab_sums_kernel(const LogitRows<T> a) {
  const T* const row = a.row();
  const float max = a.max[blockIdx.x];
  double total[1] = {0};
  for_each_column<V>(a.columns, [&](auto width, std::int64_t c) {
    constexpr int kWidth = decltype(width)::value;
    const Raw<T, kWidth> x = raw_at<T, kWidth>(row + c);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum += exp_for<T>(x[i] - max);
    total[0] += static_cast<double>(sum);
  });
  block_reduce(total, SumOf());
  if (threadIdx.x != 0) return;
  const std::int64_t label = a.label_column();
  a.sums[blockIdx.x] = static_cast<float>(total[0]);
  a.sums[a.rows + blockIdx.x] = label >= 0 ? widened(row[label]) - max : 0.0F;
}

template <class T, int V>
__global__ void __launch_bounds__(kRowThreads) cross_entropy_backward_kernel(const LogitRows<T> a) {
  T* const row = a.row();
  const float max = a.max[blockIdx.x];
  const float factor = a.scale / a.sums[blockIdx.x];
  const std::int64_t label = a.label_column();
  for_each_column<V>(a.cols, [&](auto width, std::int64_t c) {
    constexpr int kWidth = decltype(width)::value;
    Raw<T, kWidth> x;
    if (c < a.columns) x.read(row + c);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float slope = factor * exp_for<T>(x[i] - max) - (c + i == label ? a.scale : 0.0F);
      x.set(i, c + i < a.columns ? slope : 0.0F);
    }
    x.write(row + c);
  });
}

struct LossBody {
  static constexpr int kWidth = 1;
  const float* sums;
  float* loss;
  std::int64_t rows;
  __device__ float read(Width<1>, std::int64_t at) const {
    return logf(sums[at]) - sums[rows + at];
  }
  __device__ void write(Width<1>, float value, std::int64_t at) const { loss[at] = value; }
};

// --- Column sums ---

constexpr int kStrands = 8;  // rows that a block reads in parallel

// partial[y][c] = sum of rows [y * rows_each, ...) of column c.
template <class T, int V>
__global__ void __launch_bounds__(kWarp* kStrands)
    column_sum_kernel(const T* x, std::int64_t rows, std::int64_t cols, std::int64_t rows_each,
                      float* partial) {
  __shared__ float strands[kStrands][kWarp * V + 1];  // + 1 avoids bank conflicts along columns
  const std::int64_t column = (std::int64_t{blockIdx.x} * kWarp + threadIdx.x) * V;
  const std::int64_t begin = std::int64_t{blockIdx.y} * rows_each;
  const std::int64_t end = begin + rows_each < rows ? begin + rows_each : rows;
  float sums[V] = {};
  if (column < cols) {
#pragma unroll 4
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kStrands) {
      const Raw<T, V> values = raw_at<T, V>(x + row * cols + column);
#pragma unroll
      for (int i = 0; i < V; ++i) sums[i] += values[i];
    }
  }
#pragma unroll
  for (int i = 0; i < V; ++i) strands[threadIdx.y][threadIdx.x * V + i] = sums[i];
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y * kWarp + threadIdx.x);
  const std::int64_t mine = std::int64_t{blockIdx.x} * kWarp * V + thread;
  if (thread >= kWarp * V || mine >= cols) return;
  float total = 0;
#pragma unroll
  for (int s = 0; s < kStrands; ++s) total += strands[s][thread];
  partial[std::int64_t{blockIdx.y} * cols + mine] = total;
}

__global__ void __launch_bounds__(kWarp* kStrands)
    add_partial_sums_kernel(PartialSums sums, AnyFloats into) {
  __shared__ double strands[kStrands][kWarp];
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarp + threadIdx.x;
  double total = 0;
  if (column < sums.cols) {
#pragma unroll 4
    for (std::int64_t piece = threadIdx.y; piece < sums.pieces; piece += kStrands) {
      total += static_cast<double>(sums.partial[piece * sums.stride + column]);
    }
  }
  strands[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || column >= sums.cols) return;
  for (int s = 1; s < kStrands; ++s) total += strands[s][threadIdx.x];
  into.set(column, static_cast<float>(static_cast<double>(into.get(column)) + total));
}

template <class T, class AnyOp>
LogitRows<T> logit_rows(const AnyOp& op) {
  LogitRows<T> a{};
  a.logits = elements_of(op.logits);
  a.max = elements_of(op.max);
  a.rows = op.logits.rows();
  a.cols = op.logits.cols();
  a.columns = op.columns;
  if constexpr (requires { op.sums; }) {
    a.sums = elements_of(op.sums);
    a.labels = elements_of(op.labels);
    a.vocab_begin = op.vocab_begin;
  }
  if constexpr (requires { op.scale; }) a.scale = op.scale;
  return a;
}

// Calls launch(LogitRows<T>, Width<V>, blocks, threads).
template <class AnyOp, class Launch>
void for_logits(const AnyOp& op, Launch launch) {
  const int width = pack_width(op.logits.cols(), {op.logits});
  with_type_and_width(op.logits.dtype(), width, [&]<class T, int V>(Type<T>, Width<V> v) {
    launch(logit_rows<T>(op), v, static_cast<unsigned>(op.logits.rows()),
           row_threads(op.logits.cols(), width));
  });
}

}  // namespace

void add_partial_sums(const PartialSums& sums, const AnyFloats& into, const CudaState& state) {
  const auto blocks = static_cast<unsigned>((sums.cols + kWarp - 1) / kWarp);
  add_partial_sums_kernel<<<blocks, dim3(kWarp, kStrands), 0, state.stream>>>(sums, into);
}

void compute(const VocabMax& op, CudaState& state) {
  for_logits(op, [&]<class T, int V>(const LogitRows<T>& a, Width<V>, unsigned rows, int threads) {
    if (op.sums.defined()) {
      vocab_online_kernel<T, V><<<rows, threads, 0, state.stream>>>(a);
    } else {
      vocab_max_kernel<T, V><<<rows, threads, 0, state.stream>>>(a);
    }
  });
}

void compute(const VocabRescale& op, CudaState& state) {
  LogitRows<float> a{};
  a.max = elements_of(op.max);
  a.sums = elements_of(op.sums);
  a.labels = elements_of(op.labels);
  a.rows = op.max.elements();
  a.columns = op.columns;
  a.vocab_begin = op.vocab_begin;
  const auto blocks =
      static_cast<unsigned>((a.rows + kElementwiseThreads - 1) / kElementwiseThreads);
  vocab_rescale_kernel<<<blocks, kElementwiseThreads, 0, state.stream>>>(elements_of(op.own), a);
}

void compute(const VocabSums& op, CudaState& state) {
  for_logits(op, [&]<class T, int V>(const LogitRows<T>& a, Width<V>, unsigned rows, int threads) {
    vocab_sums_kernel<T, V><<<rows, threads, 0, state.stream>>>(a);
  });
}

void compute(const CrossEntropyBackward& op, CudaState& state) {
  for_logits(op, [&]<class T, int V>(const LogitRows<T>& a, Width<V>, unsigned rows, int threads) {
    cross_entropy_backward_kernel<T, V><<<rows, threads, 0, state.stream>>>(a);
  });
}

void compute(const CrossEntropyLoss& op, CudaState& state) {
  const LossBody body{elements_of(op.sums), elements_of(op.loss), op.loss.elements()};
  launch_flat(body, op.loss.elements(), false, state);
}

void compute(const ColumnSum& op, CudaState& state) {
  constexpr std::int64_t kLeastRows = 64;  // per piece, because each piece writes partial sums
  const std::int64_t rows = op.x.rows(), cols = op.x.cols();
  const int width = pack_width(cols, {op.x});
  const std::int64_t across = (cols + kWarp * width - 1) / (kWarp * width);
  const std::int64_t wanted =
      std::max<std::int64_t>(1, std::int64_t{state.limits.multiprocessors} * 8 / across);
  const std::int64_t pieces =
      std::min<std::int64_t>({wanted, (rows + kLeastRows - 1) / kLeastRows, 65535});
  const std::int64_t rows_each = (rows + pieces - 1) / pieces;
  auto* partial = state.scratch.array<float>(pieces * cols);
  const dim3 grid(static_cast<unsigned>(across), static_cast<unsigned>(pieces));
  with_type_and_width(op.x.dtype(), width, [&]<class T, int V>(Type<T>, Width<V>) {
    column_sum_kernel<T, V><<<grid, dim3(kWarp, kStrands), 0, state.stream>>>(
        elements_of(op.x), rows, cols, rows_each, partial);
  });
  add_partial_sums({partial, pieces, cols, cols}, any_floats(op.sums), state);
}

}  // namespace tpsim

// Token and position embedding tables.
#include "kernels/cuda/elementwise/row_block.cuh"
#include "kernels/cuda/runtime/cuda_ops.h"

namespace tpsim {
namespace {

constexpr int kTableThreads = 256;

// Returns the table row of a token, or -1 if another rank has it.
__device__ inline std::int64_t local_row(std::int32_t token, std::int64_t begin,
                                         std::int64_t rows) {
  const std::int64_t row = token - begin;
  return row >= 0 && row < rows ? row : -1;
}

template <class T, int V>
__global__ void __launch_bounds__(kTableThreads)
    embedding_forward_kernel(const std::int32_t* tokens, const T* table, T* y, std::int64_t cols,
                             std::int64_t vocab_begin, std::int64_t vocab_rows) {
  const std::int64_t row = local_row(tokens[blockIdx.x], vocab_begin, vocab_rows);
  T* const out = y + std::int64_t{blockIdx.x} * cols;
  for (std::int64_t c = std::int64_t{threadIdx.x} * V; c < cols; c += kTableThreads * V) {
    raw_or_zeros<T, V>(row >= 0 ? table : nullptr, row * cols + c).write(out + c);
  }
}

struct TableRows {
  const std::int32_t* tokens;
  int count;
  AnyFloats dtable;
  std::int64_t cols, vocab_begin, vocab_rows;
};

// table_columns() reads V columns of a table row, set_table_columns() writes them. A kernel reads
// and writes a row once, even if its token occurs several times. Packs require an fp32 table.
template <int V>
__device__ inline Raw<float, V> table_columns(const AnyFloats& table, std::int64_t first) {
  Raw<float, V> columns;
  if constexpr (V == kPack) {
    columns.read(static_cast<const float*>(table.data) + first);
  } else {
    columns.set(0, table.get(first));
  }
  return columns;
}
template <int V>
__device__ inline void set_table_columns(const AnyFloats& table, std::int64_t first,
                                         const Raw<float, V>& columns) {
  if constexpr (V == kPack) {
    columns.write(static_cast<float*>(table.data) + first);
  } else {
    table.set(first, columns[0]);
  }
}

// Adds the rows `rows` of x to `sums`, in order. kAhead loads are in flight at once.
template <class T, int V>
__device__ inline void add_rows(const T* x, std::int64_t cols, const int* rows, int count,
                                Raw<float, V>& sums) {
  constexpr int kAhead = 4;
  for (int first = 0; first < count; first += kAhead) {
    Raw<T, V> some[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      if (first + j < count) some[j].read(x + rows[first + j] * cols);
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      if (first + j >= count) break;
#pragma unroll
      for (int i = 0; i < V; ++i) sums.set(i, sums[i] + some[j][i]);
    }
  }
}

// Grid: x over positions of tokens, y over columns, V columns per thread. The block of a token's
// first occurrence adds the gradients of all its occurrences in order. The kernel does not use
// atomics, so its results are bit-reproducible.
template <class T, int V>
__global__ void __launch_bounds__(kTableThreads)
    embedding_backward_kernel(const TableRows a, const T* dy) {
  __shared__ unsigned found[kTableThreads / kWarp];
  __shared__ int rows[kTableThreads];
  const int mine = static_cast<int>(blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp;
  const std::int32_t token = a.tokens[mine];
  const std::int64_t row = local_row(token, a.vocab_begin, a.vocab_rows);
  if (row < 0) return;
  bool occurred = false;
  for (int t = thread; t < mine; t += kTableThreads) occurred = occurred || a.tokens[t] == token;
  if (__syncthreads_or(occurred ? 1 : 0) != 0) return;
  const std::int64_t column = (std::int64_t{blockIdx.y} * kTableThreads + thread) * V;
  const bool has_columns = column < a.cols;
  Raw<float, V> sums;
  if (has_columns) sums = table_columns<V>(a.dtable, row * a.cols + column);
  for (int first = mine; first < a.count; first += kTableThreads) {
    const int t = first + thread;
    const bool matches = t < a.count && a.tokens[t] == token;
    const unsigned bits = __ballot_sync(0xffffffffU, matches);
    __syncthreads();  // the rows of the previous round are no longer read
    if (thread % kWarp == 0) found[warp] = bits;
    __syncthreads();
    int before = 0, count = 0;
    for (int w = 0; w < kTableThreads / kWarp; ++w) {
      if (w == warp) before = count;
      count += __popc(found[w]);
    }
    if (matches) rows[before + __popc(bits & ((1U << (thread % kWarp)) - 1))] = t;
    __syncthreads();
    if (has_columns) add_rows<T, V>(dy + column, a.cols, rows, count, sums);
  }
  if (has_columns) set_table_columns<V>(a.dtable, row * a.cols + column, sums);
}

template <class T, int V>
__global__ void __launch_bounds__(kTableThreads)
    position_forward_kernel(T* x, const T* table, std::int64_t samples, std::int64_t cols) {
  T* const row = x + std::int64_t{blockIdx.x} * cols;
  const T* const added = table + blockIdx.x / samples * cols;
  for (std::int64_t c = std::int64_t{threadIdx.x} * V; c < cols; c += kTableThreads * V) {
    Raw<T, V> values = raw_at<T, V>(row + c);
    const Raw<T, V> more = raw_at<T, V>(added + c);
#pragma unroll
    for (int i = 0; i < V; ++i) values.set(i, values[i] + more[i]);
    values.write(row + c);
  }
}

// Sums over the samples of a position in fp32; the table is rounded once.
template <class T>
__global__ void __launch_bounds__(kTableThreads)
    position_backward_kernel(const T* dy, AnyFloats dtable, std::int64_t samples,
                             std::int64_t cols) {
  const std::int64_t position = blockIdx.x;
  for (std::int64_t c = threadIdx.x; c < cols; c += kTableThreads) {
    float sum = dtable.get(position * cols + c);
    for (std::int64_t b = 0; b < samples; ++b) {
      sum += widened(dy[(position * samples + b) * cols + c]);
    }
    dtable.set(position * cols + c, sum);
  }
}

unsigned blocks(std::int64_t rows) { return static_cast<unsigned>(rows); }

}  // namespace

void compute(const EmbeddingForward& op, CudaState& state) {
  const std::int64_t cols = op.y.cols();
  with_type_and_width(
      op.y.dtype(), pack_width(cols, {op.table, op.y}), [&]<class T, int V>(Type<T>, Width<V>) {
        embedding_forward_kernel<T, V><<<blocks(op.y.rows()), kTableThreads, 0, state.stream>>>(
            elements_of(op.tokens), elements_of(op.table), elements_of(op.y), cols, op.vocab_begin,
            op.table.rows());
      });
}

void compute(const EmbeddingBackward& op, CudaState& state) {
  const std::int64_t cols = op.dy.cols();
  const TableRows a{elements_of(op.tokens), static_cast<int>(op.dy.rows()),
                    any_floats(op.dtable),  cols,
                    op.vocab_begin,         op.dtable.rows()};
  const bool packed =
      op.dtable.dtype() == DType::kFloat32 && pack_width(cols, {op.dy, op.dtable}) == kPack;
  with_type_and_width(op.dy.dtype(), packed ? kPack : 1, [&]<class T, int V>(Type<T>, Width<V>) {
    const std::int64_t wide = std::int64_t{kTableThreads} * V;
    const dim3 grid(static_cast<unsigned>(op.dy.rows()),
                    static_cast<unsigned>((cols + wide - 1) / wide));
    embedding_backward_kernel<T, V>
        <<<grid, kTableThreads, 0, state.stream>>>(a, elements_of(op.dy));
  });
}

void compute(const PositionForward& op, CudaState& state) {
  const std::int64_t cols = op.x.cols();
  with_type_and_width(
      op.x.dtype(), pack_width(cols, {op.x, op.table}), [&]<class T, int V>(Type<T>, Width<V>) {
        position_forward_kernel<T, V><<<blocks(op.x.rows()), kTableThreads, 0, state.stream>>>(
            elements_of(op.x), elements_of(op.table), op.x.shape()[1], cols);
      });
}

void compute(const PositionBackward& op, CudaState& state) {
  with_type(op.dy.dtype(), [&]<class T>(Type<T>) {
    position_backward_kernel<T><<<blocks(op.dy.shape()[0]), kTableThreads, 0, state.stream>>>(
        elements_of(op.dy), any_floats(op.dtable), op.dy.shape()[1], op.dy.cols());
  });
}

}  // namespace tpsim

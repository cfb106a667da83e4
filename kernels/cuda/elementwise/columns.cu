// Bias on a range of columns, and caps of scores and logits.
#include <algorithm>

#include "kernels/cuda/elementwise/column_sums.cuh"
#include "kernels/cuda/elementwise/elementwise.cuh"
#include "kernels/cuda/runtime/cuda_ops.h"

namespace tpsim {
namespace {

// Element i is column i % cols of row i / cols in the range of columns. Packs are only used if cols
// is a multiple of kPack, so that a pack does not cross rows.
template <class T>
struct ColumnBiasBody {
  static constexpr int kWidth = kPack;
  T* x;
  const T* bias;
  std::int64_t cols, row_stride;

  __device__ T* place(std::int64_t at) const { return x + at / cols * row_stride + at % cols; }
  template <int V>
  __device__ TwoPacks<T, T, V> read(Width<V>, std::int64_t at) const {
    return {raw_at<T, V>(place(at)), raw_at<T, V>(bias + at % cols)};
  }
  template <int V>
  __device__ void write(Width<V>, TwoPacks<T, T, V> pack, std::int64_t at) const {
#pragma unroll
    for (int i = 0; i < V; ++i) pack.first.set(i, pack.first[i] + pack.second[i]);
    pack.first.write(place(at));
  }
};

constexpr int kColumnThreads = 256;

// partial[piece][column] = sum of the column over the piece's rows, in order.
template <class T>
__global__ void __launch_bounds__(kColumnThreads)
    column_slice_kernel(const T* dy, std::int64_t rows, std::int64_t cols, std::int64_t row_stride,
                        std::int64_t rows_each, float* partial) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kColumnThreads + threadIdx.x;
  if (column >= cols) return;
  const std::int64_t begin = blockIdx.y * rows_each;
  const std::int64_t end = begin + rows_each < rows ? begin + rows_each : rows;
  float sum = 0;
  for (std::int64_t row = begin; row < end; ++row) sum += widened(dy[row * row_stride + column]);
  partial[blockIdx.y * cols + column] = sum;
}

// y = cap tanh(scale x / cap).
struct Capped {
  float scale, cap;
  __device__ float operator()(float x) const { return cap * tanhf(scale * x / cap); }
};
struct CappedSlope {
  float scale, cap;
  __device__ float operator()(float slope, float y) const {
    const float t = y / cap;
    return slope * scale * (1.0F - t * t);
  }
};

}  // namespace

void compute(const ColumnBias& op, CudaState& state) {
  const Matrix& x = op.x;
  const bool packed = pack_width(x.cols, {x.tensor, op.bias}) == kPack && x.offset % kPack == 0 &&
                      x.row_stride % kPack == 0;
  with_type(x.tensor.dtype(), [&]<class T>(Type<T>) {
    const ColumnBiasBody<T> body{elements_of<T>(x.tensor) + x.offset, elements_of(op.bias), x.cols,
                                 x.row_stride};
    launch_flat(body, x.rows * x.cols, packed, state);
  });
}

void compute(const ColumnBiasGradient& op, CudaState& state) {
  constexpr std::int64_t kMostPieces = 256;
  const Matrix& dy = op.dy;
  const std::int64_t pieces = std::min(dy.rows, kMostPieces);
  const std::int64_t rows_each = (dy.rows + pieces - 1) / pieces;
  auto* const partial = state.scratch.array<float>(pieces * dy.cols);
  const dim3 grid(static_cast<unsigned>((dy.cols + kColumnThreads - 1) / kColumnThreads),
                  static_cast<unsigned>(pieces));
  with_type(dy.tensor.dtype(), [&]<class T>(Type<T>) {
    column_slice_kernel<T><<<grid, kColumnThreads, 0, state.stream>>>(
        elements_of<T>(dy.tensor) + dy.offset, dy.rows, dy.cols, dy.row_stride, rows_each, partial);
  });
  add_partial_sums({partial, pieces, dy.cols, dy.cols}, any_floats(op.sums), state);
}

void compute(const SoftCapForward& op, CudaState& state) {
  launch_flat<MapBody>(op.x, op.y, Capped{op.scale, op.cap}, state);
}

void compute(const SoftCapBackward& op, CudaState& state) {
  launch_flat<UpdateBody>(op.y, op.dy, CappedSlope{op.scale, op.cap}, state);
}

}  // namespace tpsim

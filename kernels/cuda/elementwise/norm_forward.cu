// LayerNorm and RMSNorm, forward: one block per row.
#include "kernels/cuda/elementwise/row_block.cuh"
#include "kernels/cuda/runtime/cuda_ops.h"

namespace tpsim {
namespace {

template <class T>
struct ForwardRows {
  const T* x;
  const T* gain;
  const T* bias;  // null in RMSNorm
  T* y;
  float* mean;  // null in RMSNorm
  float* rstd;
  int cols;
  float epsilon;
  bool centred;
  float offset;  // added to the gain
};

template <class T>
__device__ inline void store_statistics(const ForwardRows<T>& a, float mean, float rstd) {
  if (threadIdx.x != 0) return;
  a.rstd[blockIdx.x] = rstd;
  if (a.mean != nullptr) a.mean[blockIdx.x] = mean;
}

template <class T, int P>
__global__ void __launch_bounds__(kRowThreads) norm_forward_kernel(const ForwardRows<T> a) {
  const T* row = a.x + std::int64_t{blockIdx.x} * a.cols;
  Raw<T, kPack> x[P];
#pragma unroll
  for (int p = 0; p < P; ++p) {
    if (pack_begin(p) < a.cols) x[p].read(row + pack_begin(p));
  }
  const float n = static_cast<float>(a.cols);
  float sum[1] = {0};
  if (a.centred) {
#pragma unroll
    for (int p = 0; p < P; ++p) {
      if (pack_begin(p) >= a.cols) continue;
#pragma unroll
      for (int i = 0; i < kPack; ++i) sum[0] += x[p][i];
    }
    block_reduce(sum, SumOf());
  }
  const float mean = sum[0] / n;
  float squares[1] = {0};
#pragma unroll
  for (int p = 0; p < P; ++p) {
    if (pack_begin(p) >= a.cols) continue;
#pragma unroll
    for (int i = 0; i < kPack; ++i) squares[0] += (x[p][i] - mean) * (x[p][i] - mean);
  }
  block_reduce(squares, SumOf());
  const float rstd = 1.0F / sqrtf(squares[0] / n + a.epsilon);
  store_statistics(a, mean, rstd);
#pragma unroll
  for (int p = 0; p < P; ++p) {
    const std::int64_t at = pack_begin(p);
    if (at >= a.cols) continue;
    const Raw<T, kPack> gain = constant_at<T, kPack>(a.gain + at);
    const Raw<T, kPack> bias = constant_or_zeros<T, kPack>(a.bias, at);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      x[p].set(i, (x[p][i] - mean) * rstd * (gain[i] + a.offset) + bias[i]);
    x[p].write(a.y + std::int64_t{blockIdx.x} * a.cols + at);
  }
}

// Fallback kernel for any width and alignment. Each pass reads the row from memory.
template <class T>
__global__ void __launch_bounds__(kRowThreads) norm_forward_any_kernel(const ForwardRows<T> a) {
  const std::int64_t first = std::int64_t{blockIdx.x} * a.cols;
  const int step = static_cast<int>(blockDim.x);
  const int begin = static_cast<int>(threadIdx.x);
  const float n = static_cast<float>(a.cols);
  float sum[1] = {0};
  if (a.centred) {
    for (int c = begin; c < a.cols; c += step) sum[0] += widened(a.x[first + c]);
    block_reduce(sum, SumOf());
  }
  const float mean = sum[0] / n;
  float squares[1] = {0};
  for (int c = begin; c < a.cols; c += step) {
    const float centred = widened(a.x[first + c]) - mean;
    squares[0] += centred * centred;
  }
  block_reduce(squares, SumOf());
  const float rstd = 1.0F / sqrtf(squares[0] / n + a.epsilon);
  store_statistics(a, mean, rstd);
  for (int c = begin; c < a.cols; c += step) {
    const float bias = a.bias != nullptr ? widened(a.bias[c]) : 0.0F;
    const float xhat = (widened(a.x[first + c]) - mean) * rstd;
    a.y[first + c] = narrowed<T>(xhat * (widened(a.gain[c]) + a.offset) + bias);
  }
}

}  // namespace

void compute(const NormForward& op, CudaState& state) {
  const std::int64_t cols = op.x.cols();
  const auto rows = static_cast<unsigned>(op.x.rows());
  const bool packed = pack_width(cols, {op.x, op.y, op.gain, op.bias}) == kPack;
  with_type(op.x.dtype(), [&]<class T>(Type<T>) {
    const ForwardRows<T> a{elements_of(op.x),
                           elements_of(op.gain),
                           elements_of(op.bias),
                           elements_of(op.y),
                           elements_of(op.mean),
                           elements_of(op.rstd),
                           static_cast<int>(cols),
                           op.epsilon,
                           op.kind == NormKind::kLayerNorm,
                           op.offset};
    if (packed && cols <= row_capacity(2)) {
      norm_forward_kernel<T, 2><<<rows, row_threads(cols / kPack, 2), 0, state.stream>>>(a);
    } else if (packed && cols <= row_capacity(8)) {
      norm_forward_kernel<T, 8><<<rows, row_threads(cols / kPack, 8), 0, state.stream>>>(a);
    } else {
      norm_forward_any_kernel<T><<<rows, row_threads(cols, 4), 0, state.stream>>>(a);
    }
  });
}

}  // namespace tpsim

// Position-dependent scales and sums over heads: one block per token.
#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/runtime/cuda_ops.h"

namespace tpsim {
namespace {

// Factor of PositionScale: 1 + strength ln(1 + n), where n is (position + 1) / floor, rounded down.
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

}  // namespace

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

}  // namespace tpsim

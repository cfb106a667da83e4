// Ops on flat arrays: copies, sums, the optimizer and initial values.
#include "kernels/adamw_factors.h"
#include "kernels/cuda/elementwise/block_sums.cuh"
#include "kernels/cuda/elementwise/elementwise.cuh"
#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/runtime/cuda_ops.h"
#include "kernels/normal_stream.h"

namespace tpsim {
namespace {

struct Sum {
  __device__ float operator()(float x, float more) const { return x + more; }
};
struct Same {
  __device__ float operator()(float x) const { return x; }
};
struct Scaled {
  float factor;
  __device__ float operator()(float x) const { return x * factor; }
};

// alpha x + beta y, with alpha divided by a norm if `squares` is not null.
struct Combined {
  float alpha, beta, epsilon;
  const float* squares;
  __device__ float of_x(float x) const {
    const float norm = squares == nullptr ? 1.0F : fmaxf(sqrtf(*squares), epsilon);
    return alpha / norm * x;
  }
  __device__ float operator()(float x) const { return of_x(x); }
  __device__ float operator()(float y, float x) const { return of_x(x) + beta * y; }
};

struct Nothing {};

template <class T>
struct FillBody {
  static constexpr int kWidth = kPackOf<T>;
  T* x;
  float value;
  template <int V>
  __device__ Nothing read(Width<V>, std::int64_t) const {
    return {};
  }
  template <int V>
  __device__ void write(Width<V>, Nothing, std::int64_t at) const {
    Raw<T, V> values;
#pragma unroll
    for (int i = 0; i < V; ++i) values.set(i, value);
    values.write(x + at);
  }
};

template <class Gradient, int V>
struct AdamWPack {
  Raw<Gradient, V> slope;
  Raw<float, V> x, m, v;
};

template <class Gradient, class Weight>
struct AdamWBody {
  static constexpr int kWidth = kPackOf<float>;
  AdamWFactors f;
  float* master;
  float* momentum;
  float* variance;
  const Gradient* gradient;
  Weight* weights;  // null: the op updates only the master weights
  template <int V>
  __device__ AdamWPack<Gradient, V> read(Width<V>, std::int64_t at) const {
    return {raw_at<Gradient, V>(gradient + at), raw_at<float, V>(master + at),
            raw_at<float, V>(momentum + at), raw_at<float, V>(variance + at)};
  }
  template <int V>
  __device__ void write(Width<V>, AdamWPack<Gradient, V> pack, std::int64_t at) const {
    auto& [slope, x, m, v] = pack;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float g = f.gradient_scale * slope[i];
      m.set(i, f.beta1 * m[i] + f.one_minus_beta1 * g);
      v.set(i, f.beta2 * v[i] + f.one_minus_beta2 * g * g);
      const float root = sqrtf(v[i]) * f.inverse_root_correction2 + f.epsilon;
      x.set(i, x[i] - (f.rate * m[i] / root + f.decayed * x[i]));
    }
    x.write(master + at);
    m.write(momentum + at);
    v.write(variance + at);
    if (weights == nullptr) return;
    Raw<Weight, V> rounded;
#pragma unroll
    for (int i = 0; i < V; ++i) rounded.set(i, x[i]);
    rounded.write(weights + at);
  }
};

// normal_at() of kernels/normal_stream.h with device functions. Both compute in double, so that
// fp32 results differ by at most one unit in the last place.
__device__ inline double normal_on_device(std::uint64_t key, std::uint64_t index) {
  const double radius = sqrt(-2.0 * log(uniform_at(key, 2 * index)));
  return radius * cospi(2.0 * uniform_at(key, 2 * index + 1));
}

template <class T>
struct NormalBody {
  T* x;
  std::uint64_t key;
  double deviation;
  std::int64_t first, cols, global_cols;  // global index of x's first element
  template <int V>
  __device__ std::int64_t column(Width<V>, std::int64_t column) const {
    return column;
  }
  template <int V>
  __device__ Nothing read(Width<V>, std::int64_t, std::int64_t) const {
    return {};
  }
  template <int V>
  __device__ void write(Width<V>, std::int64_t column, Nothing, std::int64_t at) const {
    const std::int64_t index = first + (at - column) / cols * global_cols + column;
#pragma unroll 1  // limits the code size
    for (int i = 0; i < V; ++i) {
      const double normal = normal_on_device(key, static_cast<std::uint64_t>(index + i));
      x[at + i] = narrowed<T>(static_cast<float>(deviation * normal));
    }
  }
};

// Sum of squares. A pack is summed in fp32, and the sums of packs are added in double.
template <class T, int V>
__global__ void __launch_bounds__(kElementwiseThreads)
    sum_squares_kernel(const T* x, std::int64_t count, double* partial) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  double total[1] = {0};
#pragma unroll 4
  for (std::int64_t pack = thread; pack < count / V; pack += threads) {
    const Raw<T, V> values = raw_at<T, V>(x + pack * V);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < V; ++i) sum += values[i] * values[i];
    total[0] += static_cast<double>(sum);
  }
  const std::int64_t rest = count / V * V + thread;
  if (V > 1 && rest < count) {
    const float last = widened(x[rest]);
    total[0] += static_cast<double>(last * last);
  }
  block_reduce(total, SumOf());
  if (threadIdx.x == 0) partial[blockIdx.x] = total[0];
}

__global__ void __launch_bounds__(kElementwiseThreads)
    add_partial_sums_kernel(const double* partial, int count, float* sum) {
  double total[1] = {0};
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    total[0] += partial[i];
  }
  block_reduce(total, SumOf());
  if (threadIdx.x == 0) *sum = static_cast<float>(static_cast<double>(*sum) + total[0]);
}

bool is_packed(std::initializer_list<Tensor> arrays) { return pack_width(kPack, arrays) == kPack; }

}  // namespace

void compute(const Add& op, CudaState& state) {
  launch_mixed<UpdateBody>(op.x, op.into, Sum{}, state);
}

void compute(const Scale& op, CudaState& state) {
  launch_flat<MapBody>(op.x, op.x, Scaled{op.factor}, state);
}

void compute(const Fill& op, CudaState& state) {
  with_type(op.x.dtype(), [&]<class T>(Type<T>) {
    launch_flat(FillBody<T>{elements_of(op.x), op.value}, op.x.elements(), is_packed({op.x}),
                state);
  });
}

void compute(const Copy& op, CudaState& state) {
  check_cuda(cudaMemcpyAsync(op.to.raw(), op.from.raw(), static_cast<std::size_t>(op.from.bytes()),
                             cudaMemcpyDeviceToDevice, state.stream),
             "a copy");
}

void compute(const Cast& op, CudaState& state) {
  launch_mixed<MapBody>(op.from, op.to, Same{}, state);
}

void compute(const SumSquares& op, CudaState& state) {
  const std::int64_t count = op.x.elements();
  const std::int64_t blocks =
      (count + kElementwiseThreads * kPack - 1) / (std::int64_t{kElementwiseThreads} * kPack);
  const unsigned grid = blocks_for(blocks, state.limits);
  auto* partial = state.scratch.array<double>(grid);
  const bool packed = is_packed({op.x});
  with_type(op.x.dtype(), [&]<class T>(Type<T>) {
    const auto kernel = packed ? sum_squares_kernel<T, kPackOf<T>> : sum_squares_kernel<T, 1>;
    kernel<<<grid, kElementwiseThreads, 0, state.stream>>>(elements_of(op.x), count, partial);
  });
  add_partial_sums_kernel<<<1, kElementwiseThreads, 0, state.stream>>>(
      partial, static_cast<int>(grid), elements_of(op.sum));
}

void compute(const AdamW& op, CudaState& state) {
  const bool separate = op.weights.raw() != op.master.raw();
  with_two_types(op.gradient.dtype(), op.weights.dtype(),
                 [&]<class Gradient, class Weight>(Type<Gradient>, Type<Weight>) {
                   const AdamWBody<Gradient, Weight> body{
                       factors_of(op),           elements_of(op.master),
                       elements_of(op.momentum), elements_of(op.variance),
                       elements_of(op.gradient), elements_of(separate ? op.weights : Tensor())};
                   launch_flat(
                       body, op.master.elements(),
                       is_packed({op.master, op.momentum, op.variance, op.gradient, op.weights}),
                       state);
                 });
}

void compute(const Axpby& op, CudaState& state) {
  const Combined combined{op.alpha, op.beta, op.epsilon, elements_of(op.squares)};
  if (op.beta == 0.0F) {
    launch_mixed<MapBody>(op.x, op.y, combined, state);
  } else {
    launch_mixed<UpdateBody>(op.x, op.y, combined, state);
  }
}

void compute(const InitNormal& op, CudaState& state) {
  with_type(op.x.dtype(), [&]<class T>(Type<T>) {
    const NormalBody<T> body{elements_of(op.x),
                             stream_key(op.seed, op.tensor_id),
                             static_cast<double>(op.deviation),
                             op.row_begin * op.global_cols + op.col_begin,
                             op.x.cols(),
                             op.global_cols};
    launch_matrix(body, op.x.rows(), op.x.cols(), pack_width(op.x.cols(), {op.x}), state);
  });
}

}  // namespace tpsim

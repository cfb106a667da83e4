// GELU (tanh form), SwiGLU, bias and residual additions, and dropout: one pass each.
#include <cmath>

#include "kernels/cuda/elementwise/elementwise.cuh"
#include "kernels/cuda/runtime/cuda_ops.h"

namespace tpsim {
namespace {

// 1 / (1 + exp(-x)). For 16-bit T the fast instructions suffice: their absolute
// error is 2^-21.
template <class T>
__device__ inline float sigmoid(float x) {
  if constexpr (sizeof(T) == 4) {
    return 1.0F / (1.0F + expf(-x));
  } else {
    return __fdividef(1.0F, 1.0F + __expf(-x));
  }
}

// gelu(x) = x (1 + tanh(u)) / 2 = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3)
// (Hendrycks & Gimpel 2016, section 2).
constexpr float kTwiceRootTwoOverPi = 1.5957691216057308F;
constexpr float kCubic = 0.044715F;

template <class T>
__device__ inline float gelu(float x) {
  return x * sigmoid<T>(kTwiceRootTwoOverPi * x * (1.0F + kCubic * x * x));
}

template <class T>
__device__ inline float gelu_slope(float x) {
  const float s = sigmoid<T>(kTwiceRootTwoOverPi * x * (1.0F + kCubic * x * x));
  const float twice_du = kTwiceRootTwoOverPi * (1.0F + 3.0F * kCubic * x * x);
  return s + x * s * (1.0F - s) * twice_du;
}

// Loads the bias of a column; zeros if there is none.
template <class T>
struct WithBias {
  const T* bias;
  template <int V>
  __device__ Raw<T, V> column(Width<V>, std::int64_t column) const {
    return raw_or_zeros<T, V>(bias, column);
  }
};

template <class T>
struct GeluForward : WithBias<T> {
  const T* x;
  T* y;
  static GeluForward of(const BiasGeluForward& op) {
    return {{elements_of(op.bias)}, elements_of(op.x), elements_of(op.y)};
  }
  template <int V>
  __device__ Raw<T, V> read(Width<V>, const Raw<T, V>&, std::int64_t at) const {
    return raw_at<T, V>(x + at);
  }
  template <int V>
  __device__ void write(Width<V>, const Raw<T, V>& bias, Raw<T, V> values, std::int64_t at) const {
#pragma unroll
    for (int i = 0; i < V; ++i) values.set(i, gelu<T>(values[i] + bias[i]));
    values.write(y + at);
  }
};

template <class T>
struct GeluBackward : WithBias<T> {
  const T* dy;
  const T* x;
  T* dx;
  static GeluBackward of(const BiasGeluBackward& op) {
    return {{elements_of(op.bias)}, elements_of(op.dy), elements_of(op.x), elements_of(op.dx)};
  }
  template <int V>
  __device__ TwoPacks<T, T, V> read(Width<V>, const Raw<T, V>&, std::int64_t at) const {
    return {raw_at<T, V>(dy + at), raw_at<T, V>(x + at)};
  }
  template <int V>
  __device__ void write(Width<V>, const Raw<T, V>& bias, TwoPacks<T, T, V> packs,
                        std::int64_t at) const {
    auto& [slope, values] = packs;
#pragma unroll
    for (int i = 0; i < V; ++i) slope.set(i, slope[i] * gelu_slope<T>(values[i] + bias[i]));
    slope.write(dx + at);
  }
};

// Operands of x + bias + residual; the residual may be absent.
template <class T>
struct WithResidual : WithBias<T> {
  const T* x;
  const T* residual;
  T* y;
  template <int V>
  __device__ TwoPacks<T, T, V> read(Width<V>, const Raw<T, V>&, std::int64_t at) const {
    return {raw_at<T, V>(x + at), raw_or_zeros<T, V>(residual, at)};
  }
};

template <class T>
struct BiasResidualBody : WithResidual<T> {
  static BiasResidualBody of(const BiasResidual& op) {
    return {
        {{elements_of(op.bias)}, elements_of(op.x), elements_of(op.residual), elements_of(op.y)}};
  }
  template <int V>
  __device__ void write(Width<V>, const Raw<T, V>& bias, TwoPacks<T, T, V> packs,
                        std::int64_t at) const {
    auto& [values, bypass] = packs;
#pragma unroll
    for (int i = 0; i < V; ++i) values.set(i, values[i] + bias[i] + bypass[i]);
    values.write(this->y + at);
  }
};

// Returns the smallest dropout_bits() value that is kept at this rate.
std::uint64_t keep_threshold(float rate) {
  return static_cast<std::uint64_t>(std::ceil(static_cast<double>(rate) * 0x1.0p53));
}

template <class T>
struct DropoutBody : WithResidual<T> {
  std::uint8_t* mask;
  std::uint64_t seed, threshold;  // kept if dropout_bits() >= threshold, as in dropout_keeps
  float scale;
  static DropoutBody of(const DropoutForward& op) {
    return {
        {{elements_of(op.bias)}, elements_of(op.x), elements_of(op.residual), elements_of(op.y)},
        elements_of(op.mask),
        op.seed,
        keep_threshold(op.rate),
        1.0F / (1.0F - op.rate)};
  }
  template <int V>
  __device__ void write(Width<V>, const Raw<T, V>& bias, TwoPacks<T, T, V> packs,
                        std::int64_t at) const {
    auto& [values, bypass] = packs;
    Raw<std::uint8_t, V> flags;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const bool keeps = dropout_bits(seed, static_cast<std::uint64_t>(at + i)) >= threshold;
      flags.elements[i] = keeps ? 1 : 0;
      values.set(i, (keeps ? (values[i] + bias[i]) * scale : 0.0F) + bypass[i]);
    }
    values.write(this->y + at);
    flags.write(mask + at);
  }
};

template <class T>
struct DropoutSlope {
  static constexpr int kWidth = kPack;
  const T* dy;
  const std::uint8_t* mask;
  T* dx;
  float scale;
  template <int V>
  __device__ TwoPacks<T, std::uint8_t, V> read(Width<V>, std::int64_t at) const {
    return {raw_at<T, V>(dy + at), raw_at<std::uint8_t, V>(mask + at)};
  }
  template <int V>
  __device__ void write(Width<V>, TwoPacks<T, std::uint8_t, V> pack, std::int64_t at) const {
    auto& [slope, flags] = pack;
#pragma unroll
    for (int i = 0; i < V; ++i) slope.set(i, flags.elements[i] != 0 ? slope[i] * scale : 0.0F);
    slope.write(dx + at);
  }
};

// Index computation for gated activations. A row of x is [gate | up] and has 2 cols columns; y and
// its gradient have cols. For element `at` = row * cols + column of y, the element of the gate is
// row * 2 cols + column.
struct GateColumn {
  template <int V>
  __device__ std::int64_t column(Width<V>, std::int64_t column) const {
    return column;
  }
  __device__ static std::int64_t gate(std::int64_t column, std::int64_t at) {
    return 2 * at - column;
  }
};

template <class T>
struct SwigluForwardBody : GateColumn {
  const T* x;
  T* y;
  std::int64_t cols;
  static SwigluForwardBody of(const SwigluForward& op) {
    return {{}, elements_of(op.x), elements_of(op.y), op.y.cols()};
  }
  template <int V>
  __device__ TwoPacks<T, T, V> read(Width<V>, std::int64_t column, std::int64_t at) const {
    const T* const from = x + gate(column, at);
    return {raw_at<T, V>(from), raw_at<T, V>(from + cols)};
  }
  template <int V>
  __device__ void write(Width<V>, std::int64_t, TwoPacks<T, T, V> packs, std::int64_t at) const {
    auto& [gates, up] = packs;
#pragma unroll
    for (int i = 0; i < V; ++i) up.set(i, gates[i] * sigmoid<T>(gates[i]) * up[i]);
    up.write(y + at);
  }
};

template <class T, int V>
struct ThreePacks {
  Raw<T, V> slope, gates, up;
};

template <class T>
struct SwigluBackwardBody : GateColumn {
  const T* dy;
  const T* x;
  T* dx;
  std::int64_t cols;
  static SwigluBackwardBody of(const SwigluBackward& op) {
    return {{}, elements_of(op.dy), elements_of(op.x), elements_of(op.dx), op.dy.cols()};
  }
  template <int V>
  __device__ ThreePacks<T, V> read(Width<V>, std::int64_t column, std::int64_t at) const {
    const T* const from = x + gate(column, at);
    return {raw_at<T, V>(dy + at), raw_at<T, V>(from), raw_at<T, V>(from + cols)};
  }
  template <int V>
  __device__ void write(Width<V>, std::int64_t column, ThreePacks<T, V> packs,
                        std::int64_t at) const {
    auto& [slope, gates, up] = packs;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float s = sigmoid<T>(gates[i]);
      const float silu = gates[i] * s;
      const float of_gate = slope[i] * up[i] * (s + silu * (1.0F - s));
      up.set(i, slope[i] * silu);
      gates.set(i, of_gate);
    }
    T* const to = dx + gate(column, at);
    gates.write(to);
    up.write(to + cols);
  }
};

// Launches Body<T>::of(op) over the rows and columns of `like`, which has dtype T. Uses packs if
// all operands are aligned.
template <template <class> class Body, class AnyOp>
void launch_body(const AnyOp& op, const Tensor& like, std::initializer_list<Tensor> operands,
                 const CudaState& state) {
  with_type(like.dtype(), [&]<class T>(Type<T>) {
    launch_matrix(Body<T>::of(op), like.rows(), like.cols(), pack_width(like.cols(), operands),
                  state);
  });
}

}  // namespace

void compute(const BiasGeluForward& op, CudaState& state) {
  launch_body<GeluForward>(op, op.x, {op.x, op.bias, op.y}, state);
}

void compute(const BiasGeluBackward& op, CudaState& state) {
  launch_body<GeluBackward>(op, op.x, {op.dy, op.x, op.bias, op.dx}, state);
}

void compute(const SwigluForward& op, CudaState& state) {
  launch_body<SwigluForwardBody>(op, op.y, {op.x, op.y}, state);
}

void compute(const SwigluBackward& op, CudaState& state) {
  launch_body<SwigluBackwardBody>(op, op.dy, {op.dy, op.x, op.dx}, state);
}

void compute(const BiasResidual& op, CudaState& state) {
  launch_body<BiasResidualBody>(op, op.x, {op.x, op.bias, op.residual, op.y}, state);
}

void compute(const DropoutForward& op, CudaState& state) {
  launch_body<DropoutBody>(op, op.x, {op.x, op.bias, op.residual, op.y, op.mask}, state);
}

void compute(const DropoutBackward& op, CudaState& state) {
  with_type(op.dy.dtype(), [&]<class T>(Type<T>) {
    const DropoutSlope<T> body{elements_of(op.dy), elements_of(op.mask), elements_of(op.dx),
                               1.0F / (1.0F - op.rate)};
    launch_flat(body, op.dy.elements(), pack_width(kPack, {op.dy, op.mask, op.dx}) == kPack, state);
  });
}

}  // namespace tpsim

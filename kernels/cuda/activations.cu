// GELU (tanh form), SwiGLU, the additions around linear layers, and dropout: one pass each.
#include <cmath>

#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/elementwise.cuh"

namespace tpsim {
namespace {

// 1 / (1 + exp(-x)). The fast instructions are good to 2^-21, far below what a narrow T keeps.
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

// What bodies with a bias share per column: the bias itself, zeros when absent.
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
  template <int V>
  __device__ void row(Width<V>, const Raw<T, V>& bias, std::int64_t at) const {
    Raw<T, V> values = raw_at<T, V>(x + at);
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
  template <int V>
  __device__ void row(Width<V>, const Raw<T, V>& bias, std::int64_t at) const {
    Raw<T, V> slope = raw_at<T, V>(dy + at);
    const Raw<T, V> values = raw_at<T, V>(x + at);
#pragma unroll
    for (int i = 0; i < V; ++i) slope.set(i, slope[i] * gelu_slope<T>(values[i] + bias[i]));
    slope.write(dx + at);
  }
};

template <class T>
struct BiasResidualBody : WithBias<T> {
  const T* x;
  const T* residual;
  T* y;
  template <int V>
  __device__ void row(Width<V>, const Raw<T, V>& bias, std::int64_t at) const {
    Raw<T, V> values = raw_at<T, V>(x + at);
    const Raw<T, V> bypass = raw_or_zeros<T, V>(residual, at);
#pragma unroll
    for (int i = 0; i < V; ++i) values.set(i, values[i] + bias[i] + bypass[i]);
    values.write(y + at);
  }
};

template <class T>
struct DropoutBody : WithBias<T> {
  const T* x;
  const T* residual;
  T* y;
  std::uint8_t* mask;
  std::uint64_t seed, threshold;  // kept from this many bits on: dropout_keeps in whole numbers
  float scale;
  template <int V>
  __device__ void row(Width<V>, const Raw<T, V>& bias, std::int64_t at) const {
    Raw<T, V> values = raw_at<T, V>(x + at);
    const Raw<T, V> bypass = raw_or_zeros<T, V>(residual, at);
    union {
      uint2 words;
      std::uint8_t kept[kPack];
    } flags{};
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const bool keeps = dropout_bits(seed, static_cast<std::uint64_t>(at + i)) >= threshold;
      flags.kept[i] = keeps ? 1 : 0;
      values.set(i, (keeps ? (values[i] + bias[i]) * scale : 0.0F) + bypass[i]);
    }
    values.write(y + at);
    if constexpr (V == kPack) {
      *reinterpret_cast<uint2*>(mask + at) = flags.words;
    } else {
      mask[at] = flags.kept[0];
    }
  }
};

template <class T>
struct DropoutSlope {
  const T* dy;
  const std::uint8_t* mask;
  T* dx;
  float scale;
  template <int V>
  __device__ void operator()(Width<V>, std::int64_t at) const {
    Raw<T, V> slope = raw_at<T, V>(dy + at);
    union {
      uint2 words;
      std::uint8_t kept[kPack];
    } flags;
    if constexpr (V == kPack) {
      flags.words = *reinterpret_cast<const uint2*>(mask + at);
    } else {
      flags.kept[0] = mask[at];
    }
#pragma unroll
    for (int i = 0; i < V; ++i) slope.set(i, flags.kept[i] != 0 ? slope[i] * scale : 0.0F);
    slope.write(dx + at);
  }
};

// x holds [gate | up] in each row of 2 cols; y and its gradient have cols.
template <class T>
struct SwigluForwardBody {
  const T* x;
  T* y;
  std::int64_t cols;
  template <int V>
  __device__ std::int64_t column(Width<V>, std::int64_t column) const {
    return column;
  }
  template <int V>
  __device__ void row(Width<V>, std::int64_t column, std::int64_t at) const {
    const std::int64_t gate_at = 2 * at - column;  // row * 2 cols + column
    const Raw<T, V> gate = raw_at<T, V>(x + gate_at);
    Raw<T, V> up = raw_at<T, V>(x + gate_at + cols);
#pragma unroll
    for (int i = 0; i < V; ++i) up.set(i, gate[i] * sigmoid<T>(gate[i]) * up[i]);
    up.write(y + at);
  }
};

template <class T>
struct SwigluBackwardBody {
  const T* dy;
  const T* x;
  T* dx;
  std::int64_t cols;
  template <int V>
  __device__ std::int64_t column(Width<V>, std::int64_t column) const {
    return column;
  }
  template <int V>
  __device__ void row(Width<V>, std::int64_t column, std::int64_t at) const {
    const std::int64_t gate_at = 2 * at - column;
    Raw<T, V> gate = raw_at<T, V>(x + gate_at);
    Raw<T, V> up = raw_at<T, V>(x + gate_at + cols);
    const Raw<T, V> slope = raw_at<T, V>(dy + at);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float s = sigmoid<T>(gate[i]);
      const float silu = gate[i] * s;
      gate.set(i, slope[i] * up[i] * (s + silu * (1.0F - s)));
      up.set(i, slope[i] * silu);
    }
    gate.write(dx + gate_at);
    up.write(dx + gate_at + cols);
  }
};

// The least dropout_bits() that are kept at this rate.
std::uint64_t keep_threshold(float rate) {
  return static_cast<std::uint64_t>(std::ceil(static_cast<double>(rate) * 0x1.0p53));
}

}  // namespace

void compute(const BiasGeluForward& op, CudaState& state) {
  with_type(op.x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const GeluForward<T> body{
        {elements_of<T>(op.bias)}, elements_of<T>(op.x), elements_of<T>(op.y)};
    launch_matrix(body, op.x.rows(), op.x.cols(), pack_width(op.x.cols(), {op.x, op.bias, op.y}),
                  state);
  });
}

void compute(const BiasGeluBackward& op, CudaState& state) {
  with_type(op.x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const GeluBackward<T> body{{elements_of<T>(op.bias)},
                               elements_of<T>(op.dy),
                               elements_of<T>(op.x),
                               elements_of<T>(op.dx)};
    launch_matrix(body, op.x.rows(), op.x.cols(),
                  pack_width(op.x.cols(), {op.dy, op.x, op.bias, op.dx}), state);
  });
}

void compute(const SwigluForward& op, CudaState& state) {
  with_type(op.x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const SwigluForwardBody<T> body{elements_of<T>(op.x), elements_of<T>(op.y), op.y.cols()};
    launch_matrix(body, op.y.rows(), op.y.cols(), pack_width(op.y.cols(), {op.x, op.y}), state);
  });
}

void compute(const SwigluBackward& op, CudaState& state) {
  with_type(op.x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const SwigluBackwardBody<T> body{elements_of<T>(op.dy), elements_of<T>(op.x),
                                     elements_of<T>(op.dx), op.dy.cols()};
    launch_matrix(body, op.dy.rows(), op.dy.cols(), pack_width(op.dy.cols(), {op.dy, op.x, op.dx}),
                  state);
  });
}

void compute(const BiasResidual& op, CudaState& state) {
  with_type(op.x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const BiasResidualBody<T> body{{elements_of<T>(op.bias)},
                                   elements_of<T>(op.x),
                                   elements_of<T>(op.residual),
                                   elements_of<T>(op.y)};
    launch_matrix(body, op.x.rows(), op.x.cols(),
                  pack_width(op.x.cols(), {op.x, op.bias, op.residual, op.y}), state);
  });
}

void compute(const DropoutForward& op, CudaState& state) {
  with_type(op.x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const DropoutBody<T> body{{elements_of<T>(op.bias)},
                              elements_of<T>(op.x),
                              elements_of<T>(op.residual),
                              elements_of<T>(op.y),
                              elements_of<std::uint8_t>(op.mask),
                              op.seed,
                              keep_threshold(op.rate),
                              1.0F / (1.0F - op.rate)};
    launch_matrix(body, op.x.rows(), op.x.cols(),
                  pack_width(op.x.cols(), {op.x, op.bias, op.residual, op.y, op.mask}), state);
  });
}

void compute(const DropoutBackward& op, CudaState& state) {
  with_type(op.dy.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const DropoutSlope<T> body{elements_of<T>(op.dy), elements_of<std::uint8_t>(op.mask),
                               elements_of<T>(op.dx), 1.0F / (1.0F - op.rate)};
    launch_flat(body, op.dy.elements(), pack_width(kPack, {op.dy, op.mask, op.dx}), state);
  });
}

}  // namespace tpsim

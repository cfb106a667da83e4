// GELU (tanh form), SwiGLU, and the additions around linear layers.
#include <numbers>

#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/vector_math.h"

namespace tpsim {
namespace {

// gelu(x) = x (1 + tanh(u)) / 2 = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3)
// (Hendrycks & Gimpel 2016, section 2).
constexpr float kTwiceRootTwoOverPi =
    static_cast<float>(2.0 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
constexpr float kCubic = 0.044715F;

inline float gelu(float x) {
  return x * fast_sigmoid(kTwiceRootTwoOverPi * x * (1.0F + kCubic * x * x));
}

inline float gelu_slope(float x) {
  const float s = fast_sigmoid(kTwiceRootTwoOverPi * x * (1.0F + kCubic * x * x));
  const float twice_du = kTwiceRootTwoOverPi * (1.0F + 3.0F * kCubic * x * x);
  return s + x * s * (1.0F - s) * twice_du;
}

// A row of zeros stands for an absent bias.
const float* bias_or_zeros(const Tensor& bias, std::int64_t cols, Scratch& scratch) {
  if (bias.defined()) return FloatWindow(bias, cols, scratch).load(0, cols);
  float* zeros = scratch.floats(cols);
  std::fill_n(zeros, cols, 0.0F);
  return zeros;
}

}  // namespace

void compute(const BiasGeluForward& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  const FloatWindow x(op.x, cols, state.scratch), y(op.y, cols, state.scratch);
  const float* bias = bias_or_zeros(op.bias, cols, state.scratch);
  for (std::int64_t first = 0; first < op.x.elements(); first += cols) {
    const float* x_row = x.load(first, cols);
    float* y_row = y.blank(first);
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) y_row[c] = gelu(x_row[c] + bias[c]);
    y.store(first, cols);
  }
}

void compute(const BiasGeluBackward& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  Scratch& scratch = state.scratch;
  const FloatWindow x(op.x, cols, scratch), dy(op.dy, cols, scratch), dx(op.dx, cols, scratch);
  const float* bias = bias_or_zeros(op.bias, cols, scratch);
  for (std::int64_t first = 0; first < op.x.elements(); first += cols) {
    const float* x_row = x.load(first, cols);
    const float* dy_row = dy.load(first, cols);
    float* dx_row = dx.blank(first);
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) dx_row[c] = dy_row[c] * gelu_slope(x_row[c] + bias[c]);
    dx.store(first, cols);
  }
}

void compute(const SwigluForward& op, CpuState& state) {
  const std::int64_t cols = op.y.cols();
  const FloatWindow x(op.x, 2 * cols, state.scratch), y(op.y, cols, state.scratch);
  for (std::int64_t row = 0; row < op.y.rows(); ++row) {
    const float* gate = x.load(2 * row * cols, 2 * cols);
    const float* up = gate + cols;
    float* y_row = y.blank(row * cols);
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) y_row[c] = gate[c] * fast_sigmoid(gate[c]) * up[c];
    y.store(row * cols, cols);
  }
}

void compute(const SwigluBackward& op, CpuState& state) {
  const std::int64_t cols = op.dy.cols();
  Scratch& scratch = state.scratch;
  const FloatWindow x(op.x, 2 * cols, scratch), dx(op.dx, 2 * cols, scratch);
  const FloatWindow dy(op.dy, cols, scratch);
  for (std::int64_t row = 0; row < op.dy.rows(); ++row) {
    const float* gate = x.load(2 * row * cols, 2 * cols);
    const float* up = gate + cols;
    const float* dy_row = dy.load(row * cols, cols);
    float* dgate = dx.blank(2 * row * cols);
    float* dup = dgate + cols;
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) {
      const float s = fast_sigmoid(gate[c]);
      const float silu = gate[c] * s;
      const float slope = dy_row[c];
      dgate[c] = slope * up[c] * (s + silu * (1.0F - s));
      dup[c] = slope * silu;
    }
    dx.store(2 * row * cols, 2 * cols);
  }
}

void compute(const BiasResidual& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  const FloatWindow x(op.x, cols, state.scratch), y(op.y, cols, state.scratch);
  const FloatWindow residual(op.residual, cols, state.scratch);
  const float* bias = bias_or_zeros(op.bias, cols, state.scratch);
  for (std::int64_t first = 0; first < op.x.elements(); first += cols) {
    const float* x_row = x.load(first, cols);
    const float* residual_row = residual.load(first, cols);
    float* y_row = y.blank(first);
    if (residual_row != nullptr) {
#pragma omp simd
      for (std::int64_t c = 0; c < cols; ++c) y_row[c] = x_row[c] + bias[c] + residual_row[c];
    } else {
#pragma omp simd
      for (std::int64_t c = 0; c < cols; ++c) y_row[c] = x_row[c] + bias[c];
    }
    y.store(first, cols);
  }
}

void compute(const ColumnSum& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  const FloatWindow x(op.x, cols, state.scratch);
  ColumnSums sums(cols, state.scratch);
  for (std::int64_t first = 0; first < op.x.elements(); first += cols) {
    const float* row = x.load(first, cols);
    float* partial = sums.partial();
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) partial[c] += row[c];
    sums.row_done();
  }
  sums.add_to(op.sums, state.scratch);
}

}  // namespace tpsim

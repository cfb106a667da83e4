// GELU (tanh form), SwiGLU, and the additions around linear layers.
#include <algorithm>
#include <cmath>
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

struct ValueAndSlope {
  float value = 0, slope = 0;
};

// Activations without a gate, except kGelu.
ValueAndSlope plain_activation(MlpKind kind, float x) {
  if (kind == MlpKind::kGeluErf) {
    const float half_root = static_cast<float>(std::numbers::sqrt2 / 2);
    const float share = 0.5F * (1.0F + std::erf(x * half_root));
    const float density = static_cast<float>(std::numbers::inv_sqrtpi / std::numbers::sqrt2) *
                          std::exp(-0.5F * x * x);
    return {x * share, share + x * density};
  }
  const float positive = std::max(x, 0.0F);
  if (kind == MlpKind::kReluSquared) return {positive * positive, 2.0F * positive};
  return {positive, x > 0 ? 1.0F : 0.0F};
}

struct Gated {
  float y = 0, dgate = 0, dup = 0;  // the result and its derivatives
};

// Activations with a gate, except kSwiglu.
Gated gated_activation(MlpKind kind, float limit, float gate, float up) {
  if (kind == MlpKind::kGeglu) return {gelu(gate) * up, gelu_slope(gate) * up, gelu(gate)};
  constexpr float kSharpness = 1.702F;
  const float g = std::min(gate, limit), u = std::clamp(up, -limit, limit) + 1.0F;
  const float s = 1.0F / (1.0F + std::exp(-kSharpness * g));
  const float passes_gate = gate <= limit ? 1.0F : 0.0F;
  const float passes_up = up >= -limit && up <= limit ? 1.0F : 0.0F;
  return {u * g * s, passes_gate * u * s * (1.0F + kSharpness * g * (1.0F - s)), passes_up * g * s};
}

}  // namespace

void compute(const BiasGeluForward& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  const float* bias = row_or_zeros(op.bias, cols, state.scratch);
  map_rows(op.x, op.y, state.scratch, [&](std::int64_t, const float* x, float* y) {
    if (op.kind == MlpKind::kGelu) {
#pragma omp simd
      for (std::int64_t c = 0; c < cols; ++c) y[c] = gelu(x[c] + bias[c]);
    } else {
      for (std::int64_t c = 0; c < cols; ++c) {
        y[c] = plain_activation(op.kind, x[c] + bias[c]).value;
      }
    }
  });
}

void compute(const BiasGeluBackward& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  const FloatWindow dy(op.dy, cols, state.scratch);
  const float* bias = row_or_zeros(op.bias, cols, state.scratch);
  map_rows(op.x, op.dx, state.scratch, [&](std::int64_t first, const float* x, float* dx) {
    const float* slope = dy.load(first, cols);
    if (op.kind == MlpKind::kGelu) {
#pragma omp simd
      for (std::int64_t c = 0; c < cols; ++c) dx[c] = slope[c] * gelu_slope(x[c] + bias[c]);
    } else {
      for (std::int64_t c = 0; c < cols; ++c) {
        dx[c] = slope[c] * plain_activation(op.kind, x[c] + bias[c]).slope;
      }
    }
  });
}

void compute(const SwigluForward& op, CpuState& state) {
  const std::int64_t cols = op.y.cols();
  map_rows(op.x, op.y, state.scratch, [&](std::int64_t, const float* gate, float* y) {
    const float* up = gate + cols;
    if (op.kind == MlpKind::kSwiglu) {
#pragma omp simd
      for (std::int64_t c = 0; c < cols; ++c) y[c] = gate[c] * fast_sigmoid(gate[c]) * up[c];
    } else {
      for (std::int64_t c = 0; c < cols; ++c) {
        y[c] = gated_activation(op.kind, op.limit, gate[c], up[c]).y;
      }
    }
  });
}

void compute(const SwigluBackward& op, CpuState& state) {
  const std::int64_t cols = op.dy.cols();
  const FloatWindow dy(op.dy, cols, state.scratch);
  map_rows(op.x, op.dx, state.scratch, [&](std::int64_t first, const float* gate, float* dgate) {
    const float* up = gate + cols;
    const float* slopes = dy.load(first / 2, cols);
    float* dup = dgate + cols;
    if (op.kind != MlpKind::kSwiglu) {
      for (std::int64_t c = 0; c < cols; ++c) {
        const Gated g = gated_activation(op.kind, op.limit, gate[c], up[c]);
        dgate[c] = slopes[c] * g.dgate;
        dup[c] = slopes[c] * g.dup;
      }
      return;
    }
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) {
      const float s = fast_sigmoid(gate[c]);
      const float silu = gate[c] * s;
      const float slope = slopes[c];
      dgate[c] = slope * up[c] * (s + silu * (1.0F - s));
      dup[c] = slope * silu;
    }
  });
}

void compute(const ColumnBias& op, CpuState& state) {
  const FloatWindow x(op.x.tensor, op.x.cols, state.scratch);
  const float* bias = FloatWindow(op.bias, op.x.cols, state.scratch).load(0, op.x.cols);
  for (std::int64_t row = 0; row < op.x.rows; ++row) {
    const std::int64_t first = op.x.offset + row * op.x.row_stride;
    float* values = x.load(first, op.x.cols);
    for (std::int64_t c = 0; c < op.x.cols; ++c) values[c] += bias[c];
    x.store(first, op.x.cols);
  }
}

void compute(const ColumnBiasGradient& op, CpuState& state) {
  const FloatWindow dy(op.dy.tensor, op.dy.cols, state.scratch);
  ColumnSums sums(op.dy.cols, state.scratch);
  for (std::int64_t row = 0; row < op.dy.rows; ++row) {
    const float* values = dy.load(op.dy.offset + row * op.dy.row_stride, op.dy.cols);
    for (std::int64_t c = 0; c < op.dy.cols; ++c) sums.partial()[c] += values[c];
    sums.row_done();
  }
  sums.add_to(op.sums, state.scratch);
}

void compute(const SoftCapForward& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  map_rows(op.x, op.y, state.scratch, [&](std::int64_t, const float* x, float* y) {
    for (std::int64_t c = 0; c < cols; ++c) y[c] = op.cap * std::tanh(op.scale * x[c] / op.cap);
  });
}

void compute(const SoftCapBackward& op, CpuState& state) {
  const std::int64_t cols = op.y.cols();
  const FloatWindow y(op.y, cols, state.scratch), dy(op.dy, cols, state.scratch);
  for (std::int64_t first = 0; first < op.y.elements(); first += cols) {
    const float* y_row = y.load(first, cols);
    float* slope = dy.load(first, cols);
    for (std::int64_t c = 0; c < cols; ++c) {
      const float t = y_row[c] / op.cap;
      slope[c] *= op.scale * (1.0F - t * t);
    }
    dy.store(first, cols);
  }
}

void compute(const BiasResidual& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  const FloatWindow residual(op.residual, cols, state.scratch);
  const float* bias = row_or_zeros(op.bias, cols, state.scratch);
  map_rows(op.x, op.y, state.scratch, [&](std::int64_t first, const float* x, float* y) {
    const float* bypass = residual.load(first, cols);
    if (bypass != nullptr) {
#pragma omp simd
      for (std::int64_t c = 0; c < cols; ++c) y[c] = x[c] + bias[c] + bypass[c];
    } else {
#pragma omp simd
      for (std::int64_t c = 0; c < cols; ++c) y[c] = x[c] + bias[c];
    }
  });
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

// MLP activations, computed by their formulas.
#include <cmath>
#include <numbers>

#include "kernels/slow/slow_ops.h"

namespace tpsim {
namespace {

using Index = std::int64_t;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double gelu(double x) {
  const double u = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(u));
}

double gelu_slope(double x) {
  const double root = std::sqrt(2.0 / std::numbers::pi);
  const double t = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * root * (1.0 + 3.0 * 0.044715 * x * x);
}

double plain_activation(MlpKind kind, double x) {
  switch (kind) {
    case MlpKind::kGeluErf: return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
    case MlpKind::kRelu: return std::fmax(x, 0.0);
    case MlpKind::kReluSquared: return std::fmax(x, 0.0) * std::fmax(x, 0.0);
    default: return gelu(x);
  }
}

double plain_slope(MlpKind kind, double x) {
  switch (kind) {
    case MlpKind::kGeluErf:
      return 0.5 * (1.0 + std::erf(x / std::numbers::sqrt2)) +
             x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
    case MlpKind::kRelu: return x > 0 ? 1.0 : 0.0;
    case MlpKind::kReluSquared: return 2.0 * std::fmax(x, 0.0);
    default: return gelu_slope(x);
  }
}

// The two factors of a gated activation and their derivatives.
struct Factors {
  double gate = 0, dgate = 0, up = 0, dup = 1;
};
Factors gated(MlpKind kind, double limit, double gate, double up) {
  const double s = sigmoid(gate);
  if (kind == MlpKind::kSwiglu) return {gate * s, s + gate * s * (1.0 - s), up, 1};
  if (kind == MlpKind::kGeglu) return {gelu(gate), gelu_slope(gate), up, 1};
  const double g = std::fmin(gate, limit), t = sigmoid(1.702 * g);
  const double dgate = gate <= limit ? t + g * 1.702 * t * (1.0 - t) : 0.0;
  const bool inside = up >= -limit && up <= limit;
  return {g * t, dgate, std::fmin(std::fmax(up, -limit), limit) + 1.0, inside ? 1.0 : 0.0};
}

}  // namespace

void compute_slowly(const BiasGeluForward& op, const SlowMemory& memory) {
  const double *x = memory.at(op.x), *bias = memory.at(op.bias);
  double* y = memory.at(op.y);
  for (Index i = 0; i < op.x.elements(); ++i) {
    y[i] = plain_activation(op.kind, x[i] + (bias != nullptr ? bias[i % op.x.cols()] : 0.0));
  }
}

void compute_slowly(const BiasGeluBackward& op, const SlowMemory& memory) {
  const double *x = memory.at(op.x), *bias = memory.at(op.bias), *dy = memory.at(op.dy);
  double* dx = memory.at(op.dx);
  for (Index i = 0; i < op.x.elements(); ++i) {
    const double biased = x[i] + (bias != nullptr ? bias[i % op.x.cols()] : 0.0);
    dx[i] = dy[i] * plain_slope(op.kind, biased);
  }
}

void compute_slowly(const SwigluForward& op, const SlowMemory& memory) {
  const double* x = memory.at(op.x);
  double* y = memory.at(op.y);
  const Index n = op.y.cols();
  for (Index i = 0; i < op.y.elements(); ++i) {
    const Index gate_at = i / n * 2 * n + i % n;
    const Factors f = gated(op.kind, static_cast<double>(op.limit), x[gate_at], x[gate_at + n]);
    y[i] = f.gate * f.up;
  }
}

void compute_slowly(const SwigluBackward& op, const SlowMemory& memory) {
  const double *x = memory.at(op.x), *dy = memory.at(op.dy);
  double* dx = memory.at(op.dx);
  const Index n = op.dy.cols();
  for (Index i = 0; i < op.dy.elements(); ++i) {
    const Index gate_at = i / n * 2 * n + i % n;
    const Factors f = gated(op.kind, static_cast<double>(op.limit), x[gate_at], x[gate_at + n]);
    dx[gate_at] = dy[i] * f.dgate * f.up;
    dx[gate_at + n] = dy[i] * f.gate * f.dup;
  }
}

}  // namespace tpsim

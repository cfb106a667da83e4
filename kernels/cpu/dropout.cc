// Dropout, alone or between a branch's bias and the residual that it joins.
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"

namespace tpsim {

void compute(const DropoutForward& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  const FloatWindow x(op.x, cols, state.scratch), y(op.y, cols, state.scratch);
  const FloatWindow bias(op.bias, cols, state.scratch), residual(op.residual, cols, state.scratch);
  auto* mask = op.mask.data<std::uint8_t>();
  const float scale = 1.0F / (1.0F - op.rate);
  const float* bias_row = bias.load(0, cols);
  for (std::int64_t first = 0; first < op.x.elements(); first += cols) {
    const float* x_row = x.load(first, cols);
    const float* residual_row = residual.load(first, cols);
    float* y_row = y.blank(first);
    for (std::int64_t c = 0; c < cols; ++c) {
      const bool kept = dropout_keeps(op.seed, static_cast<std::uint64_t>(first + c), op.rate);
      mask[first + c] = kept ? 1 : 0;
      const float branch = x_row[c] + (bias_row != nullptr ? bias_row[c] : 0.0F);
      y_row[c] = (kept ? branch * scale : 0.0F) + (residual_row != nullptr ? residual_row[c] : 0.0F);
    }
    y.store(first, cols);
  }
}

void compute(const DropoutBackward& op, CpuState& state) {
  const std::int64_t cols = op.dy.cols();
  const FloatWindow dy(op.dy, cols, state.scratch), dx(op.dx, cols, state.scratch);
  const auto* mask = op.mask.data<std::uint8_t>();
  const float scale = 1.0F / (1.0F - op.rate);
  for (std::int64_t first = 0; first < op.dy.elements(); first += cols) {
    const float* dy_row = dy.load(first, cols);
    float* dx_row = dx.blank(first);
    for (std::int64_t c = 0; c < cols; ++c) {
      dx_row[c] = mask[first + c] != 0 ? dy_row[c] * scale : 0.0F;
    }
    dx.store(first, cols);
  }
}

}  // namespace tpsim

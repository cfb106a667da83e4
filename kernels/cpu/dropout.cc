// Dropout, alone or between a branch's bias and the residual that it joins.
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"

namespace tpsim {
namespace {

// Apart from the arithmetic below, so that each loop has elements of one width or two.
void draw_mask(const DropoutForward& op, std::int64_t first, std::int64_t count,
               std::uint8_t* mask) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    mask[i] = dropout_keeps(op.seed, static_cast<std::uint64_t>(first + i), op.rate) ? 1 : 0;
  }
}

// A row of zeros stands for an absent operand.
const float* loaded_or_zeros(const FloatWindow& window, std::int64_t first, std::int64_t count,
                             const float* zeros) {
  const float* row = window.load(first, count);
  return row != nullptr ? row : zeros;
}

}  // namespace

void compute(const DropoutForward& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  const FloatWindow x(op.x, cols, state.scratch), y(op.y, cols, state.scratch);
  const FloatWindow bias(op.bias, cols, state.scratch), residual(op.residual, cols, state.scratch);
  float* zeros = state.scratch.floats(cols);
  std::fill_n(zeros, cols, 0.0F);
  const float scale = 1.0F / (1.0F - op.rate);
  const float* bias_row = loaded_or_zeros(bias, 0, cols, zeros);
  for (std::int64_t first = 0; first < op.x.elements(); first += cols) {
    std::uint8_t* mask = op.mask.data<std::uint8_t>() + first;
    draw_mask(op, first, cols, mask);
    const float* x_row = x.load(first, cols);
    const float* residual_row = loaded_or_zeros(residual, first, cols, zeros);
    float* y_row = y.blank(first);
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) {
      const float branch = (x_row[c] + bias_row[c]) * scale;
      y_row[c] = (mask[c] != 0 ? branch : 0.0F) + residual_row[c];
    }
    y.store(first, cols);
  }
}

void compute(const DropoutBackward& op, CpuState& state) {
  const std::int64_t cols = op.dy.cols();
  const FloatWindow dy(op.dy, cols, state.scratch), dx(op.dx, cols, state.scratch);
  const float scale = 1.0F / (1.0F - op.rate);
  for (std::int64_t first = 0; first < op.dy.elements(); first += cols) {
    const std::uint8_t* mask = op.mask.data<std::uint8_t>() + first;
    const float* dy_row = dy.load(first, cols);
    float* dx_row = dx.blank(first);
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) dx_row[c] = mask[c] != 0 ? dy_row[c] * scale : 0.0F;
    dx.store(first, cols);
  }
}

}  // namespace tpsim

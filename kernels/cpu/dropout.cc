// Dropout, alone or fused with bias and residual.
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"

namespace tpsim {
namespace {

// Draws mask elements [first, first + count). The caller applies the mask in a separate loop,
// because compilers vectorize only loops with few element widths.
void draw_mask(const DropoutForward& op, std::int64_t first, std::int64_t count,
               std::uint8_t* mask) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    mask[i] = dropout_keeps(op.seed, static_cast<std::uint64_t>(first + i), op.rate) ? 1 : 0;
  }
}

}  // namespace

void compute(const DropoutForward& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  const FloatWindow residual(op.residual, cols, state.scratch);
  const float* zeros = row_or_zeros(Tensor(), cols, state.scratch);
  const float scale = 1.0F / (1.0F - op.rate);
  const float* bias = row_or_zeros(op.bias, cols, state.scratch);
  map_rows(op.x, op.y, state.scratch, [&](std::int64_t first, const float* x, float* y) {
    std::uint8_t* mask = op.mask.data<std::uint8_t>() + first;
    draw_mask(op, first, cols, mask);
    const float* loaded = residual.load(first, cols);
    const float* bypass = loaded != nullptr ? loaded : zeros;
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) {
      const float branch = (x[c] + bias[c]) * scale;
      y[c] = (mask[c] != 0 ? branch : 0.0F) + bypass[c];
    }
  });
}

void compute(const DropoutBackward& op, CpuState& state) {
  const std::int64_t cols = op.dy.cols();
  const float scale = 1.0F / (1.0F - op.rate);
  map_rows(op.dy, op.dx, state.scratch, [&](std::int64_t first, const float* dy, float* dx) {
    const std::uint8_t* mask = op.mask.data<std::uint8_t>() + first;
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) dx[c] = mask[c] != 0 ? dy[c] * scale : 0.0F;
  });
}

}  // namespace tpsim

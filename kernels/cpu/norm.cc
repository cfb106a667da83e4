// LayerNorm and RMSNorm, row by row; a row stays in cache between its passes.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/vector_math.h"

namespace tpsim {
namespace {

struct RowStatistics {
  float mean = 0;  // remains 0 for RMSNorm
  float rstd = 0;
};

RowStatistics statistics_of(const float* x, std::int64_t cols, NormKind kind, float epsilon) {
  RowStatistics s;
  const double n = static_cast<double>(cols);
  if (kind == NormKind::kLayerNorm) {
    s.mean = static_cast<float>(sum_of(cols, [&](std::int64_t c) { return x[c]; }) / n);
  }
  const double squares = sum_of(cols, [&](std::int64_t c) {
    const float centred = x[c] - s.mean;
    return centred * centred;
  });
  s.rstd = static_cast<float>(1.0 / std::sqrt(squares / n + static_cast<double>(epsilon)));
  return s;
}

void normalise(const float* x, const RowStatistics& s, const float* gain, const float* bias,
               std::int64_t cols, float* y) {
  if (bias != nullptr) {
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) y[c] = (x[c] - s.mean) * s.rstd * gain[c] + bias[c];
  } else {
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) y[c] = (x[c] - s.mean) * s.rstd * gain[c];
  }
}

// With g = dy * gain and xhat = (x - mean) * rstd over the row:
// dx = rstd * (g - average(g) - xhat * average(g * xhat)). RMSNorm does not subtract average(g).
struct RowAverages {
  float g = 0;
  float g_xhat = 0;
};

RowAverages averages_of(const float* dy, const float* x, const float* gain, const RowStatistics& s,
                        std::int64_t cols) {
  const double n = static_cast<double>(cols);
  RowAverages a;
  a.g = static_cast<float>(sum_of(cols, [&](std::int64_t c) { return dy[c] * gain[c]; }) / n);
  const double along =
      sum_of(cols, [&](std::int64_t c) { return dy[c] * gain[c] * ((x[c] - s.mean) * s.rstd); });
  a.g_xhat = static_cast<float>(along / n);
  return a;
}

// Returns gain + offset; ones if the gain is undefined.
const float* shifted_gain(const Tensor& gain, float offset, std::int64_t cols, Scratch& scratch) {
  const float* stored = FloatWindow(gain, cols, scratch).load(0, cols);
  if (stored != nullptr && offset == 0) return stored;
  float* shifted = scratch.floats(cols);
  for (std::int64_t c = 0; c < cols; ++c)
    shifted[c] = stored != nullptr ? stored[c] + offset : 1.0F;
  return shifted;
}

// Number of elements of the gain: head_dim if the heads share it, else heads * head_dim.
std::int64_t gain_width(const Tensor& gain, std::int64_t head_dim) {
  return gain.defined() ? gain.elements() : head_dim;
}

}  // namespace

void compute(const HeadNormForward& op, CpuState& state) {
  const std::int64_t cols = op.dims.head_dim, width = gain_width(op.gain, cols);
  const FloatWindow x(op.x.tensor, cols, state.scratch), raw(op.raw, cols, state.scratch);
  const float* gain = shifted_gain(op.gain, op.offset, width, state.scratch);
  std::int64_t kept = 0;  // first element of the head in raw
  for_each_head(op.dims, [&](std::int64_t position, std::int64_t sample, std::int64_t head) {
    const std::int64_t first = op.x.first(position, sample, head);
    float* values = x.load(first, cols);
    std::copy_n(values, cols, raw.blank(kept));
    raw.store(kept, cols);
    kept += cols;
    const RowStatistics s = statistics_of(values, cols, op.kind, op.epsilon);
    normalise(values, s, gain + (width > cols ? head * cols : 0), nullptr, cols, values);
    x.store(first, cols);
  });
}

void compute(const HeadNormBackward& op, CpuState& state) {
  const std::int64_t cols = op.dims.head_dim, width = gain_width(op.gain, cols);
  Scratch& scratch = state.scratch;
  const FloatWindow dx(op.dx.tensor, cols, scratch), raw(op.raw, cols, scratch);
  const float* gain = shifted_gain(op.gain, op.offset, width, scratch);
  std::vector<double> dgain(static_cast<std::size_t>(width), 0.0);
  std::int64_t kept = 0;  // first element of the head in raw
  for_each_head(op.dims, [&](std::int64_t position, std::int64_t sample, std::int64_t head) {
    const std::int64_t first = op.dx.first(position, sample, head);
    const std::int64_t own = width > cols ? head * cols : 0;
    const float* x = raw.load(kept, cols);
    kept += cols;
    float* slope = dx.load(first, cols);
    const RowStatistics s = statistics_of(x, cols, op.kind, op.epsilon);
    RowAverages a = averages_of(slope, x, gain + own, s, cols);
    if (op.kind == NormKind::kRmsNorm) a.g = 0;
    for (std::int64_t c = 0; c < cols; ++c) {
      const float xhat = (x[c] - s.mean) * s.rstd;
      dgain[static_cast<std::size_t>(own + c)] += static_cast<double>(slope[c] * xhat);
      slope[c] = s.rstd * (slope[c] * gain[own + c] - a.g - xhat * a.g_xhat);
    }
    dx.store(first, cols);
  });
  if (op.dgain.defined()) add_doubles(dgain, op.dgain, scratch);
}

void compute(const NormForward& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  const FloatWindow x(op.x, cols, state.scratch), y(op.y, cols, state.scratch);
  const float* gain = shifted_gain(op.gain, op.offset, cols, state.scratch);
  const float* bias = FloatWindow(op.bias, cols, state.scratch).load(0, cols);
  float* rstd = op.rstd.data<float>();
  float* mean = op.mean.defined() ? op.mean.data<float>() : nullptr;
  for (std::int64_t row = 0; row < op.x.rows(); ++row) {
    const float* x_row = x.load(row * cols, cols);
    const RowStatistics s = statistics_of(x_row, cols, op.kind, op.epsilon);
    normalise(x_row, s, gain, bias, cols, y.blank(row * cols));
    y.store(row * cols, cols);
    rstd[row] = s.rstd;
    if (mean != nullptr) mean[row] = s.mean;
  }
}

void compute(const NormBackward& op, CpuState& state) {
  const std::int64_t cols = op.x.cols();
  Scratch& scratch = state.scratch;
  const bool centred = op.kind == NormKind::kLayerNorm;
  const FloatWindow x(op.x, cols, scratch), dy(op.dy, cols, scratch), dx(op.dx, cols, scratch);
  const FloatWindow residual(op.residual, cols, scratch);
  const float* gain = shifted_gain(op.gain, op.offset, cols, scratch);
  const float* rstd = op.rstd.data<float>();
  const float* mean = centred ? op.mean.data<float>() : nullptr;
  ColumnSums dgain(cols, scratch), dbias(cols, scratch);
  for (std::int64_t row = 0; row < op.x.rows(); ++row) {
    const std::int64_t first = row * cols;
    const float* x_row = x.load(first, cols);
    const float* dy_row = dy.load(first, cols);
    const float* residual_row = residual.load(first, cols);
    float* dx_row = dx.blank(first);
    const RowStatistics s{centred ? mean[row] : 0.0F, rstd[row]};
    RowAverages a = averages_of(dy_row, x_row, gain, s, cols);
    if (!centred) a.g = 0;
    float* dgain_row = dgain.partial();
    float* dbias_row = dbias.partial();
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) {
      const float xhat = (x_row[c] - s.mean) * s.rstd;
      const float slope = dy_row[c];
      dgain_row[c] += slope * xhat;
      dbias_row[c] += slope;
      const float bypass = residual_row != nullptr ? residual_row[c] : 0.0F;
      dx_row[c] = s.rstd * (slope * gain[c] - a.g - xhat * a.g_xhat) + bypass;
    }
    dx.store(first, cols);
    dgain.row_done();
    dbias.row_done();
  }
  if (op.dgain.defined()) dgain.add_to(op.dgain, scratch);
  if (op.dbias.defined()) dbias.add_to(op.dbias, scratch);
}

}  // namespace tpsim

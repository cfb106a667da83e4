// Causal softmax of attention scores, row by row. The masked part of a row is set to zero without
// being read.
#include <algorithm>
#include <vector>

#include "kernels/cpu/causal_row.h"
#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"

namespace tpsim {

void compute(const SoftmaxForward& op, CpuState& state) {
  const std::int64_t queries = op.scores.shape()[1];
  const std::int64_t keys = op.scores.shape()[2];
  const FloatWindow scores(op.scores, keys, state.scratch);
  const float* slopes = op.slopes.defined() ? op.slopes.data<float>() : nullptr;
  const float* sinks = FloatWindow(op.sinks, op.heads, state.scratch).load(0, op.heads);
  for (std::int64_t matrix = 0; matrix < op.scores.shape()[0]; ++matrix) {
    const float* sink = sinks != nullptr ? sinks + matrix % op.heads : nullptr;
    const float slope = slopes != nullptr ? slopes[matrix % op.heads] : 0.0F;
    for (std::int64_t query = 0; query < queries; ++query) {
      const std::int64_t first = (matrix * queries + query) * keys;
      const std::int64_t visible = query + 1 + keys - queries;
      float* row = scores.load(first, visible);
      const RowSoftmax s =
          exponentiate(row, visible, keys, op.scale, slope, op.visibility.first_key(visible - 1));
      const float inverse = static_cast<float>(1.0 / with_sink(s, sink));
#pragma omp simd
      for (std::int64_t k = 0; k < visible; ++k) row[k] *= inverse;
      scores.store(first, keys);
    }
  }
}

void compute(const SoftmaxBackward& op, CpuState& state) {
  const std::int64_t queries = op.probs.shape()[1];
  const std::int64_t keys = op.probs.shape()[2];
  const FloatWindow probs(op.probs, keys, state.scratch), dprobs(op.dprobs, keys, state.scratch);
  std::vector<double> dsinks(static_cast<std::size_t>(op.heads), 0.0);
  for (std::int64_t row = 0; row < op.probs.rows(); ++row) {
    const std::int64_t visible = row % queries + 1 + keys - queries;
    const float* p = probs.load(row * keys, visible);
    float* d = dprobs.load(row * keys, visible);
    const float along =
        static_cast<float>(sum_of(visible, [&](std::int64_t k) { return p[k] * d[k]; }));
    if (op.dsinks.defined()) {
      const double seen = sum_of(visible, [&](std::int64_t k) { return p[k]; });
      dsinks[static_cast<std::size_t>(row / queries % op.heads)] -=
          (1 - seen) * static_cast<double>(along);
    }
#pragma omp simd
    for (std::int64_t k = 0; k < visible; ++k) d[k] = op.scale * p[k] * (d[k] - along);
    std::fill(d + visible, d + keys, 0.0F);
    dprobs.store(row * keys, keys);
  }
  add_doubles(dsinks, op.dsinks, state.scratch);
}

}  // namespace tpsim

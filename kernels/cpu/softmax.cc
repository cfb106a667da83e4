// Causal softmax of attention scores, row by row. A row's masked part is neither read nor
// exponentiated: it becomes zero.
#include <algorithm>

#include "kernels/cpu/causal_row.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"

namespace tpsim {

void compute(const SoftmaxForward& op, CpuState& state) {
  const std::int64_t queries = op.scores.shape()[1];
  const std::int64_t keys = op.scores.shape()[2];
  const FloatWindow scores(op.scores, keys, state.scratch);
  const float* slopes = op.slopes.defined() ? op.slopes.data<float>() : nullptr;
  for (std::int64_t matrix = 0; matrix < op.scores.shape()[0]; ++matrix) {
    const float slope = slopes != nullptr ? slopes[matrix % op.heads] : 0.0F;
    for (std::int64_t query = 0; query < queries; ++query) {
      const std::int64_t first = (matrix * queries + query) * keys;
      const std::int64_t visible = query + 1 + keys - queries;
      float* row = scores.load(first, visible);
      const RowSoftmax s = exponentiate(row, visible, keys, op.scale, slope);
      const float inverse = static_cast<float>(1.0 / s.sum);
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
  for (std::int64_t row = 0; row < op.probs.rows(); ++row) {
    const std::int64_t visible = row % queries + 1 + keys - queries;
    const float* p = probs.load(row * keys, visible);
    float* d = dprobs.load(row * keys, visible);
    const float along =
        static_cast<float>(sum_of(visible, [&](std::int64_t k) { return p[k] * d[k]; }));
#pragma omp simd
    for (std::int64_t k = 0; k < visible; ++k) d[k] = op.scale * p[k] * (d[k] - along);
    std::fill(d + visible, d + keys, 0.0F);
    dprobs.store(row * keys, keys);
  }
}

}  // namespace tpsim

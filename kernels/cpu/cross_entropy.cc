// vocab_parallel_cross_entropy, one row of local logits at a time.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/vector_math.h"

namespace tpsim {
namespace {

// Returns the column of a label in this rank's vocabulary range, or -1.
std::int64_t local_column(std::int32_t label, std::int64_t vocab_begin, std::int64_t columns) {
  const std::int64_t column = label - vocab_begin;
  return column >= 0 && column < columns ? column : -1;
}

// Computes the results of VocabSums for one row.
struct RowSums {
  std::int64_t row, rows;
  std::int64_t columns, label;  // label: its column, or -1 on another rank

  void take(const float* logits, float max, float* sums) const {
    sums[row] = static_cast<float>(
        sum_of(columns, [&](std::int64_t c) { return fast_exp(logits[c] - max); }));
    sums[rows + row] = label >= 0 ? logits[label] - max : 0.0F;
  }
};

}  // namespace

void compute(const VocabMax& op, CpuState& state) {
  const std::int64_t cols = op.logits.cols();
  const FloatWindow logits(op.logits, cols, state.scratch);
  float* max = op.max.data<float>();
  for (std::int64_t t = 0; t < op.logits.rows(); ++t) {
    const float* row = logits.load(t * cols, op.columns);
    max[t] = max_of(op.columns, [&](std::int64_t c) { return row[c]; });
    if (!op.sums.defined()) continue;
    const std::int32_t label = op.labels.data<std::int32_t>()[t];
    RowSums{t, op.logits.rows(), op.columns, local_column(label, op.vocab_begin, op.columns)}.take(
        row, max[t], op.sums.data<float>());
  }
}

void compute(const VocabRescale& op, CpuState&) {
  const std::int64_t rows = op.max.elements();
  const auto* labels = op.labels.data<std::int32_t>();
  const float *own = op.own.data<float>(), *max = op.max.data<float>();
  float* sums = op.sums.data<float>();
  for (std::int64_t t = 0; t < rows; ++t) {
    if (own[t] == max[t]) continue;
    sums[t] *= std::exp(own[t] - max[t]);
    const bool is_here = local_column(labels[t], op.vocab_begin, op.columns) >= 0;
    if (is_here) sums[rows + t] += own[t] - max[t];
  }
}

void compute(const VocabSums& op, CpuState& state) {
  const std::int64_t cols = op.logits.cols();
  const std::int64_t rows = op.logits.rows();
  const FloatWindow logits(op.logits, cols, state.scratch);
  const auto* labels = op.labels.data<std::int32_t>();
  const float* max = op.max.data<float>();
  float* sums = op.sums.data<float>();
  for (std::int64_t t = 0; t < rows; ++t) {
    const float* row = logits.load(t * cols, op.columns);
    const std::int64_t label = local_column(labels[t], op.vocab_begin, op.columns);
    RowSums{t, rows, op.columns, label}.take(row, max[t], sums);
  }
}

void compute(const CrossEntropyLoss& op, CpuState&) {
  const std::int64_t rows = op.loss.elements();
  const float* sums = op.sums.data<float>();
  float* loss = op.loss.data<float>();
  for (std::int64_t t = 0; t < rows; ++t) loss[t] = std::log(sums[t]) - sums[rows + t];
}

void compute(const CrossEntropyBackward& op, CpuState& state) {
  const std::int64_t cols = op.logits.cols();
  const FloatWindow logits(op.logits, cols, state.scratch);
  const auto* labels = op.labels.data<std::int32_t>();
  const float* max = op.max.data<float>();
  const float* sums = op.sums.data<float>();
  for (std::int64_t t = 0; t < op.logits.rows(); ++t) {
    float* row = logits.load(t * cols, op.columns);
    const float row_max = max[t];
    const float factor = op.scale / sums[t];
#pragma omp simd
    for (std::int64_t c = 0; c < op.columns; ++c) row[c] = factor * fast_exp(row[c] - row_max);
    const std::int64_t label = local_column(labels[t], op.vocab_begin, op.columns);
    if (label >= 0) row[label] -= op.scale;
    std::fill(row + op.columns, row + cols, 0.0F);
    logits.store(t * cols, cols);
  }
}

}  // namespace tpsim

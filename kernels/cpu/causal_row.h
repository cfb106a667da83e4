// Exponentials of one row of causal attention scores, for unfused and flash attention.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/cpu/vector_math.h"

namespace tpsim {

struct RowSoftmax {
  float max = 0;
  double sum = 0;
};

// row[k] = exp(scale * row[k] + slope * k - max) for the visible keys, 0 for the others up to
// `keys`. Returns the maximum and the sum of the results; scale > 0. Keys before `first` are not
// visible. With cap > 0, scaled scores become cap tanh(score / cap).
//
// Masked scores up to the next multiple of 16 are set to -inf and computed too, because a partial
// vector is slower.
inline RowSoftmax exponentiate(float* row, std::int64_t visible, std::int64_t keys, float scale,
                               float slope, std::int64_t first = 0, float cap = 0) {
  constexpr std::int64_t kVector = 16;
  const std::int64_t whole = std::min((visible + kVector - 1) / kVector * kVector, keys);
  std::fill(row + visible, row + whole, -INFINITY);
  std::fill(row + whole, row + keys, 0.0F);
  if (cap > 0) {
    for (std::int64_t k = first; k < visible; ++k) row[k] = cap * std::tanh(scale * row[k] / cap);
    scale = 1;
  }
  std::fill_n(row, first, -INFINITY);
  RowSoftmax result;
  float max = -INFINITY;
#pragma omp simd reduction(max : max)
  for (std::int64_t k = 0; k < whole; ++k) {
    const float position = static_cast<float>(static_cast<std::int32_t>(k));
    const float score = scale * row[k] + slope * position;
    row[k] = score;
    max = std::max(max, score);
  }
  result.max = max;
  constexpr std::int64_t kPiece = 4096;
  for (std::int64_t begin = 0; begin < whole; begin += kPiece) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t k = begin; k < std::min(begin + kPiece, whole); ++k) {
      row[k] = fast_exp(row[k] - max);
      sum += row[k];
    }
    result.sum += static_cast<double>(sum);
  }
  return result;
}

// Returns the sum of exponentials including the sink's score.
inline double with_sink(const RowSoftmax& row, const float* sink) {
  return sink == nullptr
             ? row.sum
             : row.sum + std::exp(static_cast<double>(*sink) - static_cast<double>(row.max));
}

}  // namespace tpsim

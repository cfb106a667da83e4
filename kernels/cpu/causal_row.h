// The inner part of a softmax row, shared by the unfused and the flash attention.
#pragma once

#include "kernels/cpu/vector_math.h"

namespace tpsim {

struct RowSoftmax {
  float max = 0;
  double sum = 0;
};

// row[k] = exp(scale * row[k] + slope * k - max) over the visible keys, with the max and the sum of
// the results.
inline RowSoftmax exponentiate(float* row, std::int64_t visible, float scale, float slope) {
#pragma omp simd
  for (std::int64_t k = 0; k < visible; ++k) {
    row[k] = scale * row[k] + slope * static_cast<float>(static_cast<std::int32_t>(k));
  }
  RowSoftmax result;
  result.max = max_of(visible, [&](std::int64_t k) { return row[k]; });
#pragma omp simd
  for (std::int64_t k = 0; k < visible; ++k) row[k] = fast_exp(row[k] - result.max);
  result.sum = sum_of(visible, [&](std::int64_t k) { return row[k]; });
  return result;
}

}  // namespace tpsim

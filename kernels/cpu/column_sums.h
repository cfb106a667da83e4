// Column sums of a matrix. Groups of 32 rows are summed in fp32, and the sums of the groups are
// added in double. The error therefore does not grow with the number of rows.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/cpu/floats.h"

namespace tpsim {

class ColumnSums {
 public:
  ColumnSums(std::int64_t cols, Scratch& scratch)
      : cols_(cols), partial_(scratch.floats(cols)), total_(scratch.doubles(cols)) {
    std::fill_n(partial_, cols, 0.0F);
    std::fill_n(total_, cols, 0.0);
  }

  // fp32 sums [cols], to which the caller adds a row. row_done() must follow each row.
  float* partial() const { return partial_; }
  void row_done() {
    if (++rows_ == kRowsInFloat) flush();
  }

  // Adds the sums to `into`.
  void add_to(const Tensor& into, Scratch& scratch) {
    flush();
    const FloatWindow window(into, cols_, scratch);
    float* sums = window.load(0, cols_);
    for (std::int64_t c = 0; c < cols_; ++c) {
      sums[c] = static_cast<float>(static_cast<double>(sums[c]) + total_[c]);
    }
    window.store(0, cols_);
  }

 private:
  static constexpr int kRowsInFloat = 32;

  void flush() {
#pragma omp simd
    for (std::int64_t c = 0; c < cols_; ++c) {
      total_[c] += static_cast<double>(partial_[c]);
      partial_[c] = 0.0F;
    }
    rows_ = 0;
  }

  std::int64_t cols_;
  float* partial_;
  double* total_;
  int rows_ = 0;
};

// Adds `sums` to `into`; does nothing for an undefined tensor.
inline void add_doubles(const std::vector<double>& sums, const Tensor& into, Scratch& scratch) {
  if (!into.defined()) return;
  const auto count = static_cast<std::int64_t>(sums.size());
  const FloatWindow window(into, count, scratch);
  float* values = window.load(0, count);
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] =
        static_cast<float>(static_cast<double>(values[i]) + sums[static_cast<std::size_t>(i)]);
  }
  window.store(0, count);
}

}  // namespace tpsim

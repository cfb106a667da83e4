// Medians of numbers and of quantities.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tpsim {

// The number in the middle, the upper one of two. `values` must not be empty.
template <class T>
T upper_median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The number in the middle, the mean of the two there. `values` must not be empty.
template <class T>
T median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace tpsim

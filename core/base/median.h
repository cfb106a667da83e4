// Medians of numbers and quantities.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tpsim {

// The middle value; of two middle values the upper one. `values` must not be empty.
template <class T>
T upper_median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The middle value, or the mean of the two middle values. `values` must not be empty.
template <class T>
T median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace tpsim

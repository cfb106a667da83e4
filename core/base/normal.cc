#include "core/base/normal.h"

#include <cmath>

namespace tpsim {

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

double normal_quantile(double probability) {
  double low = -10, high = 10;
  while (high - low > 1e-12) {
    const double middle = (low + high) / 2;
    (normal_cdf(middle) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

double expected_maximum(std::int64_t n) {
  if (n <= 1) return 0;
  const auto count = static_cast<double>(n);
  // Blom 1958: the mean of the largest of n normal samples, within 1 % from n = 10 on.
  return normal_quantile((count - 0.375) / (count + 0.25));
}

}  // namespace tpsim

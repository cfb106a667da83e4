#include "core/base/normal.h"

#include <algorithm>
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

namespace {
// Upper 5 % quantile of Student's t with 4 degrees of freedom.
constexpr double kStudent95 = 2.1318;
}  // namespace

double error_cdf(double x) {
  if (x > 0) return 1 - error_cdf(-x);
  const double t = x * kStudent95 / kHalfOf90;
  const double s = t / std::sqrt(4 + t * t);
  const double above = 4 / ((4 + t * t) * (1 - s));  // 1 + s without cancellation
  return above * above * (2 - s) / 4;
}

double error_quantile(double probability) {
  // Closed form for 4 degrees of freedom (Shaw 2006, J. Computational Finance 9(4)).
  const double root = std::sqrt(4 * probability * (1 - probability));
  const double t = 2 * std::sqrt(std::max(0.0, std::cos(std::acos(root) / 3) / root - 1));
  return (probability < 0.5 ? -t : t) * kHalfOf90 / kStudent95;
}

double expected_maximum(std::int64_t n) {
  if (n <= 1) return 0;
  const auto count = static_cast<double>(n);
  // Blom 1958: the mean of the largest of n normal samples, within 1 % from n = 10 on.
  return normal_quantile((count - 0.375) / (count + 0.25));
}

}  // namespace tpsim

// The normal distribution, as far as predictions need it.
#pragma once

#include <cstdint>

namespace tpsim {

// P(X <= x) and its inverse for a standard normal X.
double normal_cdf(double x);
double normal_quantile(double probability);

// Standard deviations on each side of the mean between which 90 % lie.
inline constexpr double kHalfOf90 = 1.645;

// Mean of the largest of n standard normal numbers (Blom's approximation; 0 for n = 1).
double expected_maximum(std::int64_t n);

}  // namespace tpsim

// The normal distribution, and one with heavier tails.
#pragma once

#include <cstdint>

namespace tpsim {

// P(X <= x) and its inverse for a standard normal X.
double normal_cdf(double x);
double normal_quantile(double probability);

// The same for errors of predictions, whose tails are heavier: Student's t with 4 degrees of
// freedom, scaled so that 90 % of it lies within +-kHalfOf90, as of a standard normal.
double error_cdf(double x);
double error_quantile(double probability);

// Half width of the central 90 % interval, in standard deviations.
inline constexpr double kHalfOf90 = 1.645;

// Mean of the largest of n standard normal samples (Blom's approximation; 0 for n = 1).
double expected_maximum(std::int64_t n);

}  // namespace tpsim

// Transcendental functions and sums that compilers vectorize, without a library call per element.
// Inline for loops; include only from files compiled with the CPU kernels' flags.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tpsim {

// Returns e^x with a relative error below 2e-7. Returns 0 if e^x is below the smallest normal
// float, also for -inf; 2.4e38 for x above 88.37; NaN for NaN.
//
// x = n ln2 + r with |r| <= ln2 / 2 and e^r = 1 + r + r^2 q(r). q interpolates (e^r - 1 - r) / r^2
// at the five Chebyshev nodes (error 1e-8). ln2 is split into two parts, so that n times the first
// part is exact. Adding 1.5 * 2^23 rounds to an integer and leaves the integer in the low bits.
inline float fast_exp(float x) {
  constexpr float kRounder = 12582912.0F;
  constexpr std::int32_t kRounderBits = 0x4b400000;
  const float clamped = std::min(std::max(x, -87.0F), 88.37F);
  const float shifted = clamped * 1.44269504F + kRounder;
  const float n = shifted - kRounder;
  const float r = (clamped - n * 0.693359375F) - n * -2.12194440e-4F;
  const float q = 0.5F + r * (0.16666576990F +
                              r * (0.04166655462F + r * (0.00836317905F + r * 0.00139261836F)));
  const std::int32_t exponent = std::bit_cast<std::int32_t>(shifted) - kRounderBits + 127;
  const float power = std::bit_cast<float>(exponent << 23);
  const float result = (1.0F + (r + r * r * q)) * power;
  return x < -87.0F ? 0.0F : result;
}

// 1 / (1 + e^-x).
inline float fast_sigmoid(float x) { return 1.0F / (1.0F + fast_exp(-x)); }

// Returns the sum of term(i) over [0, n). Groups of 512 terms are summed in fp32, with two vectors
// of partial sums, and the sums of the groups are added in double. The error does not grow with n.
template <class Term>
double sum_of(std::int64_t n, Term term) {
  constexpr std::int64_t kPiece = 512;
  double total = 0;
  for (std::int64_t first = 0; first < n; first += kPiece) {
    const std::int64_t half = std::min(kPiece, n - first) / 2;
    float a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
    for (std::int64_t i = first; i < first + half; ++i) {
      a += term(i);
      b += term(i + half);
    }
    if (n - first < kPiece && (n - first) % 2 == 1) a += term(n - 1);
    total += static_cast<double>(a + b);
  }
  return total;
}

// The largest term(i) over [0, n); -inf when n is 0.
template <class Term>
float max_of(std::int64_t n, Term term) {
  const std::int64_t half = n / 2;
  float a = -INFINITY, b = -INFINITY;
#pragma omp simd reduction(max : a, b)
  for (std::int64_t i = 0; i < half; ++i) {
    a = std::max(a, term(i));
    b = std::max(b, term(i + half));
  }
  for (std::int64_t i = 2 * half; i < n; ++i) a = std::max(a, term(i));
  return std::max(a, b);
}

}  // namespace tpsim

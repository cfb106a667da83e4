#include "kernels/cpu/vector_math.h"

#include <catch2/catch.hpp>
#include <vector>

namespace tpsim {

TEST_CASE("fast_exp is within 2e-7 of the exponential wherever that is a normal number") {
  double worst = 0;
  for (double x = -87.0; x < 88.3; x += 1.37e-4) {
    const auto rounded = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(rounded));
    worst = std::max(worst, std::fabs(static_cast<double>(fast_exp(rounded)) / exact - 1.0));
  }
  CHECK(worst < 2e-7);
}

TEST_CASE("fast_exp is exact at 0, zero far below and at -inf, and finite far above") {
  CHECK(fast_exp(0.0F) == 1.0F);
  CHECK(fast_exp(-100.0F) == 0.0F);
  CHECK(fast_exp(-INFINITY) == 0.0F);
  CHECK(std::isfinite(fast_exp(1000.0F)));
  CHECK(std::isnan(fast_exp(NAN)));
}

TEST_CASE("fast_sigmoid keeps its relative accuracy in the far negative") {
  for (float x = -80.0F; x < 30.0F; x += 0.01F) {
    const double exact = 1.0 / (1.0 + std::exp(-static_cast<double>(x)));
    CHECK(std::fabs(static_cast<double>(fast_sigmoid(x)) / exact - 1.0) < 4e-7);
  }
}

TEST_CASE("sums and maxima count every element of any length once") {
  for (std::int64_t n : {0, 1, 3, 4, 31, 4096, 4097, 10001}) {
    CHECK(sum_of(n, [](std::int64_t) { return 1.0F; }) == static_cast<double>(n));
    const float last = max_of(n, [](std::int64_t i) { return static_cast<float>(i); });
    CHECK(last == (n == 0 ? -INFINITY : static_cast<float>(n - 1)));
  }
}

}  // namespace tpsim

// Delayed scaling: scales from the amax values of earlier steps.
#include "reference_model/parallel/delayed_scales.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace tpsim {

TEST_CASE("a scale is the maximum of the amax history over the format's maximum") {
  CHECK(delayed_scale({1, 7, 2}, 448, 1) == 7.0F / 448);
  CHECK(delayed_scale({3}, 57344, 1) == 3.0F / 57344);
}

TEST_CASE("an amax of zero or infinity does not change a scale") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(delayed_scale({0, 0}, 448, 0.25F) == 0.25F);
  CHECK(delayed_scale({kInfinity, std::numeric_limits<float>::quiet_NaN()}, 448, 0.25F) == 0.25F);
  CHECK(delayed_scale({kInfinity, 2}, 448, 0.25F) == 2.0F / 448);
}

TEST_CASE("a scale has a finite inverse for any amax") {
  const float scale = delayed_scale({1e-40F}, 57344, 1);
  CHECK(scale > 0);
  CHECK(std::isfinite(1 / scale));
}

}  // namespace tpsim

// Prediction of a plan with changed stack parts, for tests of laws.
#pragma once

#include <catch2/catch.hpp>

#include "sim/step/predict.h"
#include "tests/sim/small_scenario.h"

namespace tpsim::test {

inline Prediction with(const Scenario& scenario, const Plan& plan, const PartValues& parts) {
  Scenario changed = scenario;
  changed.stack = with_parts(changed.stack, parts);
  LayerPricer pricer(changed);
  const Result<Prediction> predicted = predict(pricer, plan);
  REQUIRE(predicted.ok());
  return *predicted;
}

}  // namespace tpsim::test

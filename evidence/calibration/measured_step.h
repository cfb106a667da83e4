// Measured steps for a calibration, and its options.
#pragma once

#include <functional>
#include <string>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// A measured step with the inputs of its prediction.
struct MeasuredStep {
  std::string id;
  Scenario scenario;
  PartValues stated;  // parts that are known for this run; the fit keeps them
  Plan plan;
  Seconds measured;
};

struct CalibrationChoices {
  bool stack = true, cluster = true;  // owners of the constants that may move
  int threads = 1;
  std::function<void(double share)> progress = {};
};

}  // namespace tpsim

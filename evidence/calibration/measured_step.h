// Measured steps for a calibration, and the options of a calibration.
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
  PartValues stated;  // software parts known for this run, which the fit keeps
  Plan plan;
  Seconds measured;
};

struct CalibrationChoices {
  bool stack = true, cluster = true;  // whether the constants of each may change
  int threads = 1;
  std::function<void(double share)> progress = {};
};

}  // namespace tpsim

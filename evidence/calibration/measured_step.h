// Measured steps that a calibration starts from, and what it may change.
#pragma once

#include <functional>
#include <string>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// A step that ran, and what it is predicted from.
struct MeasuredStep {
  std::string id;
  Scenario scenario;
  PartValues stated;  // parts that are known of this run: no fit changes them
  Plan plan;
  Seconds measured;
};

struct CalibrationChoices {
  bool stack = true, cluster = true;  // whose constants may move
  int threads = 1;
  std::function<void(double share)> progress = {};
};

}  // namespace tpsim

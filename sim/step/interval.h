// The 90 % interval of a predicted step.
#pragma once

#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "sim/step/step.h"

namespace tpsim {

// Sets both ends of the interval from the relative spreads of its causes: residuals of the stack,
// variation between runs, prices that were not measured, host, network between nodes, experts.
// Requires prediction.step and prediction.sources.
void set_interval(Prediction& prediction, const Scenario& scenario, const Plan& plan,
                  const StepCost& cost);

// Standard deviations of log(step) on each side of the predicted step.
struct StepSpreads {
  double faster = 0, slower = 0;
};
// Returns the spreads that the ends of the interval stand for.
StepSpreads spreads_of(const Prediction& prediction);

// Widens the interval by an additional, independent uncertainty with these spreads.
void widen_interval(Prediction& prediction, const StepSpreads& more);

}  // namespace tpsim

// The 90 % interval of a predicted step.
#pragma once

#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "sim/step/step.h"

namespace tpsim {

// Sets both ends from what is uncertain in the step: the stack's residuals, prices that were not
// measured, the host, the network between nodes, experts. Needs prediction.step and .sources.
void set_interval(Prediction& prediction, const Scenario& scenario, const Plan& plan,
                  const StepCost& cost);

// Widens the interval by more uncertainty: standard deviations of the logarithm of the step, to its
// faster and to its slower side.
void widen_interval(Prediction& prediction, double faster, double slower);

}  // namespace tpsim

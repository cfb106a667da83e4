// The 90 % interval of a predicted step.
#pragma once

#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "sim/step/step.h"

namespace tpsim {

// Sets both ends from the uncertainties of the step: residuals of the stack, prices that were not
// measured, host, network between nodes, experts. Requires prediction.step and .sources.
void set_interval(Prediction& prediction, const Scenario& scenario, const Plan& plan,
                  const StepCost& cost);

// Widens the interval by further uncertainty: standard deviations of the logarithm of the step,
// toward faster and toward slower.
void widen_interval(Prediction& prediction, double faster, double slower);

}  // namespace tpsim

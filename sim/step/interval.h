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

// Widens the interval by an additional, independent uncertainty. `faster`, `slower`: its standard
// deviation in log(step) on each side.
void widen_interval(Prediction& prediction, double faster, double slower);

}  // namespace tpsim

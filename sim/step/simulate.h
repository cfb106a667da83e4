// The whole prediction of one plan: trace -> price -> schedule -> memory -> report.
#pragma once

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/plan/report.h"
#include "core/program/timeline.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Event-exact. Error if the plan is illegal for the model or needs more GPUs than the cluster has.
// Error (kDoesNotFit) if it has more tasks than the scenario's limits allow. A plan that does not
// fit in memory is predicted too (peak > capacity, p_oom).
Result<Prediction> simulate(const Scenario& scenario, const Plan& plan);

// Returns the spans of the step, for charts and trace files.
Result<Timeline> simulate_timeline(const Scenario& scenario, const Plan& plan);

}  // namespace tpsim

// The whole prediction of one plan: trace -> price -> schedule -> memory -> report.
#pragma once

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/plan/report.h"
#include "core/program/timeline.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Event-exact. Fails when the plan is illegal for the model or needs more GPUs than the cluster
// has, or has more tasks than the scenario's limits allow (kDoesNotFit); a plan that does not fit
// in memory is predicted all the same (peak > capacity, p_oom).
Result<Prediction> simulate(const Scenario& scenario, const Plan& plan);

// The step's spans, for pictures and traces.
Result<Timeline> simulate_timeline(const Scenario& scenario, const Plan& plan);

}  // namespace tpsim

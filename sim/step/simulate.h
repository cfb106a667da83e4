// Predicts one plan: trace, prices, schedule, memory, and the explained terms of the step.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/plan/report.h"
#include "core/program/timeline.h"
#include "core/scenario/scenario.h"

namespace tpsim {

class OpCostModel;

// Simulates the step task by task. Error if the plan is illegal for the model or needs more GPUs
// than the cluster has. kDoesNotFit if the plan has more tasks than the scenario's limits allow. A
// plan that exceeds device memory is still predicted, with peak > capacity and p_oom. `shared_ops`:
// as in PriceLists.
Result<Prediction> simulate(const Scenario& scenario, const Plan& plan,
                            std::shared_ptr<const OpCostModel> shared_ops = nullptr);

// Returns the spans of all stages in the step, for charts and trace files.
Result<Timeline> simulate_timeline(const Scenario& scenario, const Plan& plan);

}  // namespace tpsim

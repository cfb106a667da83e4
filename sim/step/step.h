// The step of one plan, term by term, and the memory of every stage.
#pragma once

#include <vector>

#include "core/plan/report.h"
#include "core/program/timeline.h"
#include "sim/layers/layer_pricer.h"
#include "sim/schedule/pipeline.h"
#include "sim/schedule/stage_costs.h"

namespace tpsim {

struct StepCost {
  Seconds step;
  SecondsBy<kStepTerms.back()> terms;
  std::int64_t busiest_stage = 0;
  double bubble_fraction = 0;
  SecondsBy<PriceSource::kModel> by_source;  // device time by source of the price, in seconds
  PipelineResult pipeline;
};

// Returns the step and its terms. `costs`: result of plan_costs() for the plan. `timeline` may be
// null.
StepCost step_cost(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
                   Timeline* timeline);

// Returns the peak memory of each stage as the device reports it.
std::vector<StageMemory> memory_by_stage(const StackSpec& stack, const Plan& plan,
                                         const PlanCosts& costs);

}  // namespace tpsim

// The price of one plan: the step term by term, and the memory of every stage.
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
  SecondsBy<PriceSource::kModel> by_source;  // device seconds
  PipelineResult pipeline;
};

// `costs` are the plan's (plan_costs); `timeline` may be null.
StepCost step_cost(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
                   Timeline* timeline);

// Peak memory of each stage as its device reports it.
std::vector<StageMemory> memory_by_stage(const StackSpec& stack, const Plan& plan,
                                         const PlanCosts& costs);

}  // namespace tpsim

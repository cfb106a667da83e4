// One plan, priced: the time of a step term by term, and the memory of every stage.
#pragma once

#include <array>
#include <vector>

#include "core/report.h"
#include "core/timeline.h"
#include "sim/layer_pricer.h"
#include "sim/pipeline.h"
#include "sim/stage_costs.h"

namespace tpsim {

// The terms of a step, seen from its busiest stage. They add up to the step.
enum class StepTerm : std::uint8_t {
  kMatmul,
  kAttention,
  kElementwise,
  kTensorCommunication,
  kZeroCommunication,
  kContextCommunication,
  kExpertCommunication,
  kHostWait,           // the device waits for the host to issue work
  kTransfer,           // sending activations, gathering received ones
  kBubble,             // waiting for other stages
  kGradientReduction,  // over the data-parallel group, as far as nothing hides it
  kTiedEmbedding,
  kClipping,
  kOptimizer,
  kWeightGather,
  kHostStep,    // once per step: logging, schedule
  kStragglers,  // waiting for the slowest of many ranks
};
inline constexpr int kStepTermCount = static_cast<int>(StepTerm::kStragglers) + 1;

struct StepCost {
  Seconds step;
  std::array<Seconds, kStepTermCount> terms{};
  std::int64_t busiest_stage = 0;
  double bubble_fraction = 0;
  SecondsBy<PriceSource, kPriceSourceCount> by_source;  // device seconds
  PipelineResult pipeline;
};

// `costs` are the plan's (plan_costs); `timeline` may be null.
StepCost step_cost(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
                   Timeline* timeline);

// What each stage's device reports as used at its peak.
std::vector<StageMemory> memory_by_stage(const StackSpec& stack, const Plan& plan,
                                         const PlanCosts& costs);

}  // namespace tpsim

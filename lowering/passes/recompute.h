// FLOPs of forward work that runs again in backward.
#pragma once

#include "core/base/units.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Returns the FLOPs of a step that run again in backward, over all ranks. Counted as in
// model_flops_per_step(): the sum of both is the hardware FLOPs of a step.
Flops recomputed_flops(const Scenario& scenario, const Plan& plan);

// Returns whether full recompute of the block does not repeat its last GEMM.
bool stops_early(const StackSpec& stack, const ModelSpec& block);

}  // namespace tpsim

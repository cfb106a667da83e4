// FLOPs of forward work that runs again in backward.
#pragma once

#include "core/base/units.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "lowering/trace/trace.h"

namespace tpsim {

// Returns the FLOPs of a step that run again in backward, over all ranks. Counted as in
// model_flops_per_step(): the sum of both is the hardware FLOPs of a step.
Flops recomputed_flops(const Scenario& scenario, const Plan& plan);

// Returns the recompute with which a layer is traced: none for layers other than blocks, and for
// selective recompute of other modules than the attention core.
Recompute traced_recompute(LayerKind kind, Recompute recompute, const StackSpec& stack);

// Whether selective recompute recomputes the attention core and nothing else.
bool recomputes_core_alone(const StackSpec& stack);

// Returns whether full recompute of the block does not repeat its last GEMM.
bool stops_early(const StackSpec& stack, const ModelSpec& block);

}  // namespace tpsim

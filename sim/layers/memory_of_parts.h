// Memory that software options add to the traced program: saved tensors of unfused ops, the loss
// head's copies of the logits, and quantized inputs of linear layers.
#pragma once

#include <vector>

#include "core/scenario/scenario.h"
#include "core/software/stack_spec.h"
#include "sim/layers/layer_cost.h"
#include "sim/trace/trace.h"

namespace tpsim {

// Returns the number of logits of one micro-batch on this rank; 0 if the trace is not that of a
// head.
std::int64_t logits_of(const LayerTrace& trace);

// Sets the moments to the stack's dtype, for any dtype of the weights (Transformer Engine's
// FusedAdam, exp_avg_dtype). Removes the fp32 copy of the weights if the stack has none. An
// offloaded optimizer keeps all three in fp32.
void narrow_optimizer(Program& program, const StackSpec& stack);

void add_memory_of_parts(LayerMemory& memory, LayerKind kind, const LayerTrace& trace,
                         const Plan& plan, const Scenario& scenario);

}  // namespace tpsim

// Memory that the parts of the software add to what the traced program allocates: copies that plain
// ops keep for backward, the loss head's copies of the logits, and what linear layers keep in fewer
// bits.
#pragma once

#include <vector>

#include "core/scenario/scenario.h"
#include "core/software/stack_spec.h"
#include "sim/layers/layer_cost.h"
#include "sim/trace/trace.h"

namespace tpsim {

// Logits of one micro-batch on this rank, in elements; 0 where the trace is not of a head.
std::int64_t logits_of(const LayerTrace& trace);

// Narrows both moments of Adam to the stack's dtype, whatever the weights' (Transformer Engine's
// FusedAdam, exp_avg_dtype), and drops the fp32 copy of the weights where the stack has none. An
// offloaded optimizer keeps all three in fp32.
void narrow_optimizer(Program& program, const StackSpec& stack);

void add_memory_of_parts(LayerMemory& memory, LayerKind kind, const LayerTrace& trace,
                         const Plan& plan, const Scenario& scenario);

}  // namespace tpsim

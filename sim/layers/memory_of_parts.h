// Memory that software parts add to the allocations of the traced program. These are saved tensors
// of plain ops, the loss head's copies of the logits, and quantized inputs of linear layers.
#pragma once

#include <vector>

#include "core/scenario/scenario.h"
#include "core/software/stack_spec.h"
#include "sim/layers/layer_cost.h"
#include "sim/trace/trace.h"

namespace tpsim {

// Logits of one micro-batch on this rank, in elements; 0 if the trace is not that of a head.
std::int64_t logits_of(const LayerTrace& trace);

// Sets both Adam moments to the stack's dtype, whatever the weights' dtype (Transformer Engine's
// FusedAdam, exp_avg_dtype). Removes the fp32 copy of the weights if the stack has none. An
// offloaded optimizer keeps all three in fp32. Muon has one moment of the weights of a block: its
// norms, which AdamW updates, are counted with it.
void narrow_optimizer(Program& program, LayerKind kind, const StackSpec& stack);

void add_memory_of_parts(LayerMemory& memory, LayerKind kind, const LayerTrace& trace,
                         const Plan& plan, const Scenario& scenario);

}  // namespace tpsim

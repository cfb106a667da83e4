// Forward work that runs again in backward, for kinds of recompute that the reference model does
// not execute. Derived from the trace of a block without recompute.
#pragma once

#include <vector>

#include "sim/layers/layer_cost.h"
#include "sim/trace/trace.h"

namespace tpsim {

std::vector<OpRecord> forward_ops(const LayerTrace& trace);

// Returns the FLOPs of a step that run again in backward, over all ranks. Counted as in
// model_flops_per_step(): the sum of both is the hardware FLOPs of a step.
Flops recomputed_flops(const ModelSpec& model, const SoftwareParts& parts, const Plan& plan);

// Returns the forward ops of the attention core. With Recompute::kSelective and flash attention
// these run again, although the traced program stores no probabilities and does not recompute.
std::vector<OpRecord> attention_core_ops(const LayerTrace& trace);

// Returns the forward ops and collectives of the given modules (bits of RecomputeModule), in order.
// Does not include the attention core.
std::vector<ProgramEvent> events_of_modules(const LayerTrace& trace, std::int64_t modules);
// Removes the outputs of the given modules from the saved activations.
void drop_modules(LayerMemory& block, const LayerTrace& trace, std::int64_t modules);

// Recompute::kOps saves the outputs of the attention core and of every second GEMM, where q, k, v,
// gate and up are separate GEMMs. The traced program fuses these GEMMs, so the work is
// approximated: returns every second traced GEMM and all ops that are not GEMMs, without the
// attention core.
std::vector<OpRecord> every_second_product(const LayerTrace& trace);
// Sets the saved activations for Recompute::kOps, approximated by the block's input, the output of
// the attention core, and half of the outputs of all GEMMs. `full`: memory of a block with full
// recompute.
void keep_half_of_products(LayerMemory& block, const LayerMemory& full, const LayerTrace& trace);

// Work of a block that runs again in backward but is not in its traced backward.
struct RecomputedWork {
  std::vector<OpRecord> ops;          // for Recompute::kOps, or the attention core
  std::vector<ProgramEvent> modules;  // events of the trace; they run before `ops`
};
RecomputedWork recomputed_work(const LayerTrace& trace, const Plan& plan,
                               const SoftwareParts& parts);

}  // namespace tpsim

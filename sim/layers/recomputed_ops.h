// Forward work that runs again in backward, for kinds of recompute that the reference model does
// not execute. Taken from the trace of a block without recompute.
#pragma once

#include <vector>

#include "sim/layers/layer_cost.h"
#include "sim/trace/trace.h"

namespace tpsim {

std::vector<OpRecord> forward_ops(const LayerTrace& trace);

// FLOPs of a step that run again in backward, on all ranks together. Counted as in
// model_flops_per_step(); the sum of both is the hardware FLOPs of a step.
Flops recomputed_flops(const ModelSpec& model, const SoftwareParts& parts, const Plan& plan);

// Recompute::kSelective with flash attention: the core's forward runs again. The traced program
// omits this, since it has no probabilities to recompute.
std::vector<OpRecord> attention_core_ops(const LayerTrace& trace);

// Ops and collectives of forward that belong to any of these modules (bits of RecomputeModule), in
// order. Excludes the attention core.
std::vector<ProgramEvent> events_of_modules(const LayerTrace& trace, std::int64_t modules);
// Removes the results of these modules from the saved activations.
void drop_modules(LayerMemory& block, const LayerTrace& trace, std::int64_t modules);

// Recompute::kOps keeps the attention core and every second GEMM, with q, k, v, gate and up as
// separate GEMMs. The traced program fuses these GEMMs, so that two approximations are used.
// Recomputed ops: every second traced GEMM, and all ops that are not GEMMs.
std::vector<OpRecord> every_second_product(const LayerTrace& trace);
// Saved activations: a block's input, and half of the results of all GEMMs. `full`: memory of a
// block with full recompute.
void keep_half_of_products(LayerMemory& block, const LayerMemory& full, const LayerTrace& trace);

// All work of a block that runs again in backward and is not in its traced program.
struct RecomputedWork {
  std::vector<OpRecord> ops;          // for Recompute::kOps, or the attention core
  std::vector<ProgramEvent> modules;  // of the trace, before these ops
};
RecomputedWork recomputed_work(const LayerTrace& trace, const Plan& plan,
                               const SoftwareParts& parts);

}  // namespace tpsim

// What runs again in backward where the software recomputes in ways that the reference model does
// not execute: taken from the trace of a block that keeps everything.
#pragma once

#include <vector>

#include "sim/layers/layer_cost.h"
#include "sim/trace/trace.h"

namespace tpsim {

std::vector<OpRecord> forward_ops(const LayerTrace& trace);

// FLOPs of a step that run again in backward, on all ranks together. Counted as
// model_flops_per_step() counts, whose sum with these is a step's hardware FLOPs.
Flops recomputed_flops(const ModelSpec& model, const SoftwareParts& parts, const Plan& plan);

// Recompute::kSelective beside flash attention: its forward runs again, which the traced program,
// without probabilities to recompute, leaves out.
std::vector<OpRecord> attention_core_ops(const LayerTrace& trace);

// Ops and collectives of forward that belong to one of these modules (bits of RecomputeModule), in
// their order; attention's core left out.
std::vector<ProgramEvent> events_of_modules(const LayerTrace& trace, std::int64_t modules);
// Their results are not kept.
void drop_modules(LayerMemory& block, const LayerTrace& trace, std::int64_t modules);

// Recompute::kOps keeps the attention core and every second product, q, k, v, gate and up apart.
// The traced program has these in one product each, so that
// - what runs again in backward is every second one of its products and all that is none,
std::vector<OpRecord> every_second_product(const LayerTrace& trace);
// - and what a block keeps beyond its input is half of the results of all products. `full`: of a
//   block that keeps its input alone.
void keep_half_of_products(LayerMemory& block, const LayerMemory& full, const LayerTrace& trace);

// All of a block that runs again in backward and that its traced program leaves out.
struct RecomputedWork {
  std::vector<OpRecord> ops;          // of Recompute::kOps, or attention's core
  std::vector<ProgramEvent> modules;  // of the trace, before these ops
};
RecomputedWork recomputed_work(const LayerTrace& trace, const Plan& plan,
                               const SoftwareParts& parts);

}  // namespace tpsim

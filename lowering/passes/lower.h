// Lowering: makes a traced layer of the reference model into what a framework runs. Each pass is
// one behaviour of the framework, in a file of its own; lowering_passes() has their order.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "lowering/passes/lowered_layer.h"
#include "lowering/passes/verify.h"

namespace tpsim {

// Inputs of the passes besides the layer.
struct LayerInputs {
  const Scenario& scenario;
  const Plan& plan;
  const ModelSpec& block;  // the model with the layer's kind of block
  // Bytes that a block with full recompute leaves allocated after forward. Read for
  // Recompute::kOps.
  double checkpoint = 0;
};

// Returns the number of experts on a rank; 1 for a model without experts.
inline std::int64_t local_experts(const LayerInputs& inputs) {
  return std::max<std::int64_t>(1, inputs.scenario.model.experts.count / inputs.plan.degrees.ep);
}

struct LoweringPass {
  std::string_view name;     // "quantization"
  std::string_view meaning;  // for reports
  PassChanges changes;       // LayerVerifier reports any other change
  void (*run)(LoweredLayer& layer, const LayerInputs& inputs);
};

// Returns the passes in their order.
std::span<const LoweringPass> lowering_passes();

// Passes that run, by their index in lowering_passes() and step_end_passes().
struct PassChoice {
  std::bitset<32> layer = ~std::bitset<32>(), step_end = ~std::bitset<32>();
  bool is_verified = true;
};
// Returns the first passes over a layer, and all over the end of a step.
PassChoice first_passes(std::size_t count);
// Leaves out the passes with this name. Returns whether there are any.
bool leave_out(std::string_view name, PassChoice& choice);

// Returns the layer after the chosen passes. Verifies it after each.
LoweredLayer lower(LayerKind kind, const LayerTrace& trace, const LayerInputs& inputs,
                   const PassChoice& choice = {});

// Inputs of the passes over the end of a step.
struct StepEndInputs : LayerInputs {
  const StepEndTrace& trace;
};

struct StepEndPass {
  std::string_view name;     // "reduction_buckets"
  std::string_view meaning;  // for reports
  PassChanges changes;
  void (*run)(LoweredLayer& layer, const StepEndInputs& inputs);
};
std::span<const StepEndPass> step_end_passes();

// Returns the layer's work once per step and its persistent memory, after the chosen passes.
// Verifies it after each.
LoweredLayer lower_step_end(LayerKind kind, const StepEndInputs& inputs,
                            const PassChoice& choice = {});

// The passes over the end of a step.
void narrow_optimizer_state(LoweredLayer& layer, const StepEndInputs& inputs);
void share_among_owners(LoweredLayer& layer, const StepEndInputs& inputs);
void gather_narrow_weights(LoweredLayer& layer, const StepEndInputs& inputs);
void reduce_in_buckets(LoweredLayer& layer, const StepEndInputs& inputs);
void unfuse_optimizer(LoweredLayer& layer, const StepEndInputs& inputs);
void issue_step_end(LoweredLayer& layer, const StepEndInputs& inputs);
void store_frozen_weights(LoweredLayer& layer, const StepEndInputs& inputs);
// Whether the memory holds frozen weights.
bool holds_frozen_weights(const LoweredAllocation& made);

// The passes over a layer.
void merge_attention_heads(LoweredLayer& layer, const LayerInputs& inputs);
void dispatch_tokens(LoweredLayer& layer, const LayerInputs& inputs);
void copy_host_shards(LoweredLayer& layer, const LayerInputs& inputs);
void gather_sharded_weights(LoweredLayer& layer, const LayerInputs& inputs);
// Part of gather_sharded_weights(): frozen weights of few bits are gathered as stored.
void narrow_frozen_gathers(LoweredLayer& layer, const LayerInputs& inputs);
void exchange_context(LoweredLayer& layer, const LayerInputs& inputs);
void recompute(LoweredLayer& layer, const LayerInputs& inputs);
void stop_recompute_early(LoweredLayer& layer, const LayerInputs& inputs);
void quantize(LoweredLayer& layer, const LayerInputs& inputs);
void unfuse_kernels(LoweredLayer& layer, const LayerInputs& inputs);
void copy_column_inputs(LoweredLayer& layer, const LayerInputs& inputs);
void cast_weights(LoweredLayer& layer, const LayerInputs& inputs);
void dequantize_weights(LoweredLayer& layer, const LayerInputs& inputs);
void unfuse_adapters(LoweredLayer& layer, const LayerInputs& inputs);
void end_in_forward(LoweredLayer& layer, const LayerInputs& inputs);
void compute_loss(LoweredLayer& layer, const LayerInputs& inputs);
void drop_recomputed(LoweredLayer& layer, const LayerInputs& inputs);
void stash_tokens(LoweredLayer& layer, const LayerInputs& inputs);
void overlap_collectives(LoweredLayer& layer, const LayerInputs& inputs);
void issue_launches(LoweredLayer& layer, const LayerInputs& inputs);

}  // namespace tpsim

// Gathers of sharded weights. DeepSpeed gathers the weights of experts that run in a loop matrix by
// matrix. FSDP 2 and DeepSpeed gather into one buffer and copy the weights from there. FSDP gathers
// ahead, and keeps the weights outside of blocks.
#include <algorithm>
#include <cmath>

#include "core/program/op_dims.h"
#include "lowering/passes/lower.h"
#include "lowering/passes/quantization.h"
#include "lowering/passes/shard_groups.h"
#include "lowering/passes/step_habits.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;

bool is_gather(const LoweredCollective& record) {
  return record.label.part == ModelPart::kParameterGather && record.bytes > 0;
}

// Halves the gathers of a block and their buffers. Norms, whose weights stay in 16 bits, are
// counted as linear layers.
void gather_in_8_bits(LoweredLayer& layer, const Plan& plan) {
  const std::int64_t width = size_of(plan.dtype);
  for (LoweredCollective& record : layer.collectives) {
    if (is_gather(record)) record.bytes /= width;
  }
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    for (const LoweredEvent& event : layer.phase(phase).events) {
      if (event.kind != Kind::kAllocate) continue;
      LoweredAllocation& made = layer.allocations[event.index];
      if (made.category == MemoryCategory::kWeights) made.bytes /= width;
    }
  }
}

// Only the experts' weights: a block gathers its other weights first, then those of its experts.
void gather_experts_by_matrix(LoweredLayer& layer, const LayerInputs& inputs) {
  const auto modules = static_cast<double>(mlp_matrices(inputs.block) * local_experts(inputs));
  bool is_of_experts = true;
  for (LoweredCollective& record : layer.collectives) {
    if (record.label.part != ModelPart::kParameterGather) continue;
    is_of_experts = !is_of_experts;
    if (!is_of_experts || record.bytes == 0) continue;
    record.calls = modules;
    record.bytes = std::llround(static_cast<double>(record.bytes) / modules);
  }
}

// torch.ops.fsdp.split_with_sizes_copy (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py),
// torch.cat in DeepSpeed's AllGatherCoalescedHandle (runtime/zero/partition_parameters.py).
void copy_gathered(LoweredLayer& layer, Phase phase) {
  rewrite(layer, phase, [&](const LoweredEvent& event, std::vector<LoweredEvent>& events) {
    events.push_back(event);
    if (event.kind != Kind::kCollective) return;
    const LoweredCollective& record = layer.collectives[event.index];
    if (!is_gather(record)) return;
    const double bytes = record.calls * static_cast<double>(record.bytes);
    events.push_back(
        added(layer, LoweredCopy{.label = {ModelPart::kMlpLinear, "zero3.copy_weights"},
                                 .moved = Bytes(2 * bytes)}));
  });
}

// Returns the number of weights of a block on a rank, gathered over the data group.
double block_weights(const LayerInputs& inputs, ModelSpec block) {
  block.experts.count /= inputs.plan.degrees.ep;
  return static_cast<double>(block_parameter_count(block)) /
         static_cast<double>(inputs.plan.degrees.tp);
}

// Returns the number of trained weights of a block on a rank, gathered over the data group.
double trained_weights(const LayerInputs& inputs) {
  ModelSpec block = inputs.block;
  block.experts.count /= inputs.plan.degrees.ep;
  return static_cast<double>(trained_block_count(block, finetune_of(inputs.scenario.stack))) /
         static_cast<double>(inputs.plan.degrees.tp);
}

// Returns the number of weights of the unit that has the head.
double head_weights(const LayerInputs& inputs, GatheredUnits units) {
  const ModelSpec& model = inputs.scenario.model;
  const bool has_both = units == GatheredUnits::kRoot && !model.tied_embedding;
  return static_cast<double>(model.vocab * model.hidden) * (has_both ? 2 : 1) /
         static_cast<double>(inputs.plan.degrees.tp);
}

bool has_gathers(const LoweredLayer& layer) {
  return std::any_of(layer.collectives.begin(), layer.collectives.end(), is_gather);
}

// The traced layer allocates its gathered weights while its GEMMs use them.
void drop_traced_gathers(LoweredLayer& layer) {
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    for (const LoweredEvent& event : layer.phase(phase).events) {
      if (event.kind != Kind::kAllocate) continue;
      LoweredAllocation& made = layer.allocations[event.index];
      if (made.category == MemoryCategory::kWeights) made.bytes = 0;
    }
  }
}

// FSDPParamGroup in torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py: unshard() gathers the
// next unit in forward, _prefetch_unshard() in backward. post_backward() frees the gradients of the
// unit before, reduce_scatter_state.
void keep_units(LoweredLayer& layer, const LayerInputs& inputs, GatheredUnits units) {
  const Plan& plan = inputs.plan;
  const ModelSpec& model = inputs.scenario.model;
  const bool is_block = layer.kind == LayerKind::kBlock;
  const bool has_unit =
      layer.kind == LayerKind::kHead || (units == GatheredUnits::kRoot && plan.degrees.pp == 1);
  const double kept = has_unit ? head_weights(inputs, units) : 0;
  if (!is_block && has_unit) drop_traced_gathers(layer);
  const auto hold_weights = [&](Phase phase, double weights, const char* label) {
    hold(layer, {phase, Moment::Edge::kStart}, {phase, Moment::Edge::kEnd}, weights, label,
         MemoryCategory::kWeights);
  };
  const auto width = static_cast<double>(size_of(plan.dtype));
  const Finetune& finetune = finetune_of(inputs.scenario.stack);
  const double block_width = gathers_in_8_bits(plan) ? 1 : base_weight_bytes(finetune, plan.dtype);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    hold_weights(phase, width * kept, "gathered unit of the head");
    // The head runs last in forward, the embedding in backward.
    const LayerKind stops = phase == Phase::kForward ? LayerKind::kHead : LayerKind::kEmbedding;
    if (layer.kind == stops || layer.kind < LayerKind::kEmbedding) continue;
    const std::int64_t next = phase == Phase::kForward ? 0 : model.layers - 1;
    const double weights = block_weights(
        inputs, is_block ? inputs.block : with_block_kind(model, block_kind(model, next)));
    hold_weights(phase, block_width * weights, "weights gathered ahead");
  }
  if (is_block) {
    const auto summed = static_cast<double>(size_of(plan.gradient_dtype));
    const double trained =
        finetune.freezes() ? trained_weights(inputs) : block_weights(inputs, inputs.block);
    hold(layer, kBackwardStart, kBackwardEnd, summed * trained, "gradients in reduction",
         MemoryCategory::kGradients);
  }
}

}  // namespace

// Copies overlap like the collectives of the same shards: torch/distributed/fsdp/_fully_shard/
// _fsdp_param_group.py copies on a stream of its own, partition_parameters.py of DeepSpeed before
// the gather. FSDP copies its fp32 shards.
void copy_host_shards(LoweredLayer& layer, const LayerInputs& inputs) {
  const Plan& plan = inputs.plan;
  if (!offloads_weights(plan) || !inputs.scenario.profile.device.asynchronous) return;
  const bool is_wide = keeps_fp32_weights_alone(inputs.scenario.stack, plan.dtype);
  const auto bytes_of = [](DType dtype) { return static_cast<double>(size_of(dtype)); };
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    rewrite(layer, phase, [&](const LoweredEvent& event, std::vector<LoweredEvent>& events) {
      const LoweredOp* const op = event.kind == Kind::kOp ? &layer.ops[event.index] : nullptr;
      const std::string_view label = op == nullptr ? "" : op->label.text;
      const bool uploads = label == kUploadWeights || label == kUploadFrozen;
      const bool stores = label == kStoreGradients;
      if (!uploads && !stores && label != kAddGradients) return events.push_back(event);
      const CollectiveKind kind =
          uploads ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter;
      LoweredCollective copy{
          {.kind = kind, .group = GroupKind::kData, .ranks = 1, .bytes = 0, .label = op->label}};
      copy.mover = Mover::kCopyEngine;
      const DType stored = is_wide ? DType::kFloat32 : plan.dtype;
      const double elements = op->repeats * product_of(op->key, ElementDim::kElements);
      if (uploads) copy.copied = elements * bytes_of(stored);
      if (stores) copy.copied = elements * bytes_of(plan.gradient_dtype);
      if (label == kAddGradients) copy.passed = op->repeats * op->bytes;
      events.push_back(added(layer, copy));
    });
  }
}

void gather_sharded_weights(LoweredLayer& layer, const LayerInputs& inputs) {
  const StackSpec& stack = inputs.scenario.stack;
  set_sync(layer, stack);
  narrow_frozen_gathers(layer, inputs);
  const bool in_loop = stack.parts.expert_kernel == ExpertKernel::kLooped &&
                       stack.host.per_gather > Seconds() && layer.kind == LayerKind::kBlock &&
                       has_experts(inputs.block);
  if (in_loop) gather_experts_by_matrix(layer, inputs);
  if (layer.kind == LayerKind::kBlock && gathers_in_8_bits(inputs.plan)) {
    gather_in_8_bits(layer, inputs.plan);
  }
  if (stack.gathered_units != GatheredUnits::kInUse && has_gathers(layer))
    keep_units(layer, inputs, stack.gathered_units);
  if (!stack.copies_gathered_weights) return;
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    copy_gathered(layer, phase);
  }
}

}  // namespace tpsim

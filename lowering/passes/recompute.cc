// Recompute of modules and of single ops. The reference model executes full recompute, and
// selective recompute of unfused attention; the trace contains their work.
#include "lowering/passes/recompute.h"

#include <algorithm>

#include "core/program/op_dims.h"
#include "core/scenario/measured_stack.h"
#include "lowering/passes/lower.h"
#include "lowering/passes/quantization.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;

// Returns the output bytes of a GEMM, fused attention, norm, activation or permute; 0 for other
// ops. GEMMs of 8 or 4 bits have outputs in the plan's dtype.
double result_bytes(const OpRecord& op, const Plan& plan) {
  const OpKey& key = op.key;
  const DType dtype = is_narrow(op.key.dtype) ? plan.dtype : op.key.dtype;
  const auto width = static_cast<double>(size_of(dtype));
  switch (key.kind) {
    case OpKind::kNormForward:
    case OpKind::kSwigluForward:
    case OpKind::kBiasGeluForward: return product_of(key, RowDim::kRows, RowDim::kCols) * width;
    case OpKind::kPermuteTokens: return slot_elements(key) * width;
    case OpKind::kMatmul: return product_of(key, GemmDim::kBatch, GemmDim::kM, GemmDim::kN) * width;
    case OpKind::kFlashForward: {
      const bool own_width = dim_of(key, FlashDim::kValueWidth) > 0;
      return product_of(key, FlashDim::kBatch, FlashDim::kQueries, FlashDim::kHeads,
                        own_width ? FlashDim::kValueWidth : FlashDim::kWidth) *
             width;
    }
    default: return 0;
  }
}

// Returns the Megatron-Core recompute modules that contain a model part, as bits. The attention
// core is selected separately.
std::int64_t module_of(ModelPart part, bool has_experts) {
  switch (part) {
    case ModelPart::kNorm: return bit(RecomputeModule::kLayerNorm);
    case ModelPart::kLatentUp:
    case ModelPart::kRotary:
    case ModelPart::kAttentionNorm: return bit(RecomputeModule::kLatentUp);
    case ModelPart::kMlpLinear:
    case ModelPart::kActivation:
      return has_experts ? bit(RecomputeModule::kSharedExperts) | bit(RecomputeModule::kMoe)
                         : bit(RecomputeModule::kMlp);
    case ModelPart::kExpertActivation:
      return bit(RecomputeModule::kExpertActivation) | bit(RecomputeModule::kMoe);
    case ModelPart::kRouter:
    case ModelPart::kPermute:
    case ModelPart::kLatentExperts:
    case ModelPart::kExperts:
    case ModelPart::kDispatch: return bit(RecomputeModule::kMoe);
    default: return 0;
  }
}

// Returns whether selective recompute repeats the attention core. The reference model keeps what
// the backward of flash attention needs.
bool repeats_core(const Scenario& scenario, const Plan& plan) {
  const bool is_reference = scenario.stack.name == own_stack(scenario.profile);
  return recomputes_core_attention(scenario.stack.parts) &&
         !(is_reference && plan.attention == AttentionKind::kFlash);
}

// Returns the forward FLOPs of a block that selective recompute repeats. Norms and activations
// count zero FLOPs.
double flops_of_modules(const BlockFlops& block, bool has_experts, std::int64_t modules,
                        bool repeats_core) {
  const auto has = [&](RecomputeModule module) { return holds(modules, bit(module)); };
  double flops = 0;
  if (repeats_core) flops += block.attention_core;
  if (has(RecomputeModule::kLatentUp)) flops += block.latent_up;
  if (has(has_experts ? RecomputeModule::kMoe : RecomputeModule::kMlp)) {
    flops += block.feed_forward + block.shared_experts;
  } else if (has_experts && has(RecomputeModule::kSharedExperts)) {
    flops += block.shared_experts;
  }
  return flops;
}

// Returns the FLOPs of a block's forward that full recompute repeats.
double repeated_flops(const StackSpec& stack, const ModelSpec& block) {
  const double all = block_forward_flops(block).total();
  if (!stops_early(stack, block) || !has_feed_forward(block)) return all;
  const std::int64_t experts = has_experts(block) ? block.experts.per_token : 1;
  return all - 2.0 * static_cast<double>(experts * block.seq * block.ffn_hidden * block.hidden);
}

// For Recompute::kBlocks: returns the forward FLOPs of the first blocks of every chunk, which are
// recomputed.
double flops_of_some_blocks(const Scenario& scenario, const Plan& plan) {
  const ModelSpec& model = scenario.model;
  std::vector<double> count(static_cast<std::size_t>(block_kind_count(model)));
  std::int64_t first = 0;
  for (const std::int64_t blocks : plan.stage_layers) {
    for (std::int64_t i = 0; i < recomputed_blocks(plan, blocks); ++i) {
      ++count[static_cast<std::size_t>(block_kind(model, first + i))];
    }
    first += blocks;
  }
  double flops = 0;
  for (std::size_t kind = 0; kind < count.size(); ++kind) {
    const ModelSpec one = with_block_kind(model, static_cast<std::int64_t>(kind));
    if (one.has_backward) flops += count[kind] * repeated_flops(scenario.stack, one);
  }
  return flops;
}

// Returns the bytes of activations that forward leaves allocated.
double saved_activations(const LoweredLayer& layer, const LayerInputs& inputs) {
  const AllocationRounding rounding = allocation_rounding(inputs.scenario.stack);
  double bytes = 0;
  for (const LoweredEvent& event : layer.phase(Phase::kForward).events) {
    if (event.kind != Kind::kAllocate && event.kind != Kind::kFree) continue;
    const LoweredAllocation& made = layer.allocations[event.index];
    if (made.category != MemoryCategory::kActivations) continue;
    bytes += (event.kind == Kind::kAllocate ? 1 : -1) * allocated_bytes(made, rounding);
  }
  return bytes;
}

LoweredEvent repeated(LoweredLayer& layer, const LoweredEvent& event) {
  LoweredEvent again = event.kind == Kind::kOp
                           ? added(layer, LoweredOp(layer.ops[event.index]))
                           : added(layer, LoweredCollective(layer.collectives[event.index]));
  again.is_first = true;
  return again;
}

// Recompute::kOps saves the outputs of the attention core and of every second GEMM, where q, k, v,
// gate and up are separate GEMMs. The traced program fuses these GEMMs, so the work is
// approximated: every second traced GEMM and all ops that are not GEMMs run again, without the
// attention core.
std::vector<LoweredEvent> every_second_product(const LoweredLayer& layer) {
  bool keeps_product = false;
  std::vector<LoweredEvent> again;
  for (const LoweredEvent& event : layer.phase(Phase::kForward).events) {
    if (event.kind != Kind::kOp) continue;
    const LoweredOp& op = layer.ops[event.index];
    if (op.label.part == ModelPart::kAttentionCore) continue;
    const bool is_linear = is_linear_layer(op);
    if (is_linear) keeps_product = !keeps_product;
    if (!is_linear || !keeps_product) again.push_back(event);
  }
  return again;
}

// Returns the model part of a forward event. A collective at the start of a tensor-parallel region
// has the part of the next op, a collective at its end that of the op before.
ModelPart part_of(const LoweredLayer& layer, std::size_t i) {
  const std::vector<LoweredEvent>& events = layer.phase(Phase::kForward).events;
  if (events[i].kind == Kind::kOp) return layer.ops[events[i].index].label.part;
  const LoweredCollective& record = layer.collectives[events[i].index];
  if (record.label.part != ModelPart::kTensorParallel) return record.label.part;
  const std::size_t step = record.kind == CollectiveKind::kAllGather ? 1 : ~std::size_t{0};
  for (std::size_t at = i + step; at < events.size(); at += step) {
    if (events[at].kind == Kind::kOp) return layer.ops[events[at].index].label.part;
  }
  return record.label.part;
}

// Returns the ops and collectives of the recomputed modules in the order of forward. With flash
// attention, the traced program stores no probabilities and does not recompute the attention core.
std::vector<LoweredEvent> events_of_modules(const LoweredLayer& layer, const LayerInputs& inputs) {
  const SoftwareParts& parts = inputs.scenario.stack.parts;
  const bool adds_core =
      repeats_core(inputs.scenario, inputs.plan) && inputs.plan.attention == AttentionKind::kFlash;
  const std::vector<LoweredEvent>& events = layer.phase(Phase::kForward).events;
  std::vector<LoweredEvent> again;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const bool is_op = events[i].kind == Kind::kOp;
    if (!is_op && events[i].kind != Kind::kCollective) continue;
    const ModelPart part = part_of(layer, i);
    const bool is_core = is_op && adds_core && part == ModelPart::kAttentionCore;
    if (is_core || holds(parts.recompute_modules, module_of(part, has_experts(inputs.block)))) {
      again.push_back(events[i]);
    }
  }
  return again;
}

// Returns the activations that Recompute::kOps saves, approximated by the block's input, the output
// of the attention core, and half of the outputs of all GEMMs.
double saved_by_ops(const LoweredLayer& layer, const LayerInputs& inputs) {
  double kept = inputs.checkpoint;
  for_each_op(layer, Phase::kForward, [&](const LoweredOp& op) {
    if (op.label.part == ModelPart::kAttentionCore) {
      kept += op.repeats * result_bytes(op, inputs.plan);
    }
    if (is_linear_layer(op)) kept += result_bytes(op, inputs.plan) / 2;
  });
  return kept;
}

double outputs_of_modules(const LoweredLayer& layer, const LayerInputs& inputs) {
  const std::int64_t modules = inputs.scenario.stack.parts.recompute_modules;
  double bytes = 0;
  for_each_op(layer, Phase::kForward, [&](const LoweredOp& op) {
    if (holds(modules, module_of(op.label.part, has_experts(inputs.block))))
      bytes += result_bytes(op, inputs.plan);
  });
  return bytes;
}

}  // namespace

Recompute traced_recompute(LayerKind kind, Recompute recompute, const StackSpec& stack) {
  const bool attends_once =
      recompute == Recompute::kSelective && !recomputes_core_attention(stack.parts);
  return kind != LayerKind::kBlock || attends_once ? Recompute::kNone : recompute;
}

bool recomputes_core_alone(const StackSpec& stack) {
  return stack.parts.recompute_modules == bit(RecomputeModule::kCoreAttention);
}

Flops recomputed_flops(const Scenario& scenario, const Plan& plan) {
  const ModelSpec& model = scenario.model;
  const SoftwareParts& parts = scenario.stack.parts;
  const auto batch = static_cast<double>(plan.global_batch);
  if (plan.recompute == Recompute::kBlocks) {
    return Flops(batch * flops_of_some_blocks(scenario, plan));
  }
  double flops = 0;
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    const ModelSpec one = with_block_kind(model, kind);
    if (!one.has_backward) continue;
    const BlockFlops block = block_forward_flops(one);
    const auto blocks = static_cast<double>(blocks_of_kind(model, kind));
    switch (plan.recompute) {
      case Recompute::kNone:
      case Recompute::kBlocks: break;
      case Recompute::kFull: flops += blocks * repeated_flops(scenario.stack, one); break;
      case Recompute::kOps: flops += blocks * block.products() / 2; break;
      case Recompute::kSelective:
        flops += blocks * flops_of_modules(block, has_experts(one), parts.recompute_modules,
                                           repeats_core(scenario, plan));
        break;
    }
  }
  return Flops(batch * flops);
}

void recompute(LoweredLayer& layer, const LayerInputs& inputs) {
  if (layer.kind != LayerKind::kBlock) return;
  std::vector<LoweredEvent> again;
  if (inputs.plan.recompute == Recompute::kOps) again = every_second_product(layer);
  if (inputs.plan.recompute == Recompute::kSelective) again = events_of_modules(layer, inputs);
  std::vector<LoweredEvent>& events = layer.phase(Phase::kRecompute).events;
  for (const LoweredEvent& event : again) events.push_back(repeated(layer, event));
}

void drop_recomputed(LoweredLayer& layer, const LayerInputs& inputs) {
  if (layer.kind != LayerKind::kBlock) return;
  const double saved = saved_activations(layer, inputs);
  if (inputs.plan.recompute == Recompute::kOps) {
    const double dropped = std::max(0.0, saved - saved_by_ops(layer, inputs));
    hold(layer, kForwardStart, kRecomputeStart, -dropped, "recomputed ops");
  }
  if (inputs.plan.recompute == Recompute::kSelective) {
    const double outputs = outputs_of_modules(layer, inputs);
    hold(layer, kForwardStart, kRecomputeStart, -std::min(outputs, saved), "recomputed modules");
  }
}

}  // namespace tpsim

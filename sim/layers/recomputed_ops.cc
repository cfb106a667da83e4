#include "sim/layers/recomputed_ops.h"

#include <algorithm>

#include "sim/layers/low_precision.h"

namespace tpsim {
namespace {

using memory_index::kActivations;

// Frees `bytes` of saved activations in forward and allocates them in backward, where they are
// recomputed.
void drop(LayerMemory& block, double bytes) {
  block.forward.left[kActivations] -= bytes;
  block.forward.highest[kActivations] -= bytes;
  block.forward.each[kActivations] -= bytes;
  block.backward.left[kActivations] += bytes;
  block.backward.highest[kActivations] += bytes;
  block.backward.each[kActivations] += bytes;
}

// Returns the output bytes of a GEMM, fused attention, norm, activation or permute; 0 for other
// ops.
double result_bytes(const OpRecord& op) {
  const OpDims& d = op.key.dims;
  const auto width = static_cast<double>(size_of(op.key.dtype));
  switch (op.key.kind) {
    case OpKind::kNormForward:
    case OpKind::kSwigluForward:
    case OpKind::kBiasGeluForward: return static_cast<double>(d[0] * d[1]) * width;
    case OpKind::kPermuteTokens: return static_cast<double>(d[1] * d[2] * d[3]) * width;
    case OpKind::kMatmul: return static_cast<double>(d[0] * d[1] * d[2]) * width;
    case OpKind::kFlashForward:
      return static_cast<double>(d[0] * d[1] * d[2] * (d[7] > 0 ? d[7] : d[4])) * width;
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

// Returns the forward FLOPs of a block that selective recompute repeats. Norms and activations
// count zero FLOPs.
double flops_of_modules(const BlockFlops& block, bool has_experts, std::int64_t modules) {
  const auto has = [&](RecomputeModule module) { return holds(modules, bit(module)); };
  double flops = 0;
  if (has(RecomputeModule::kCoreAttention)) flops += block.attention_core;
  if (has(RecomputeModule::kLatentUp)) flops += block.latent_up;
  if (has(has_experts ? RecomputeModule::kMoe : RecomputeModule::kMlp)) {
    flops += block.feed_forward + block.shared_experts;
  } else if (has_experts && has(RecomputeModule::kSharedExperts)) {
    flops += block.shared_experts;
  }
  return flops;
}

// For Recompute::kBlocks: returns the forward FLOPs of the first blocks of every chunk, which are
// recomputed.
double flops_of_some_blocks(const ModelSpec& model, const Plan& plan) {
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
    flops += count[kind] * block_forward_flops(one).total();
  }
  return flops;
}

}  // namespace

Flops recomputed_flops(const ModelSpec& model, const SoftwareParts& parts, const Plan& plan) {
  const auto batch = static_cast<double>(plan.global_batch);
  if (plan.recompute == Recompute::kBlocks) {
    return Flops(batch * flops_of_some_blocks(model, plan));
  }
  double flops = 0;
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    const ModelSpec one = with_block_kind(model, kind);
    const BlockFlops block = block_forward_flops(one);
    const auto blocks = static_cast<double>(blocks_of_kind(model, kind));
    switch (plan.recompute) {
      case Recompute::kNone:
      case Recompute::kBlocks: break;
      case Recompute::kFull: flops += blocks * block.total(); break;
      case Recompute::kOps: flops += blocks * block.products() / 2; break;
      case Recompute::kSelective:
        flops += blocks * flops_of_modules(block, has_experts(one), parts.recompute_modules);
        break;
    }
  }
  return Flops(batch * flops);
}

std::vector<OpRecord> forward_ops(const LayerTrace& trace) {
  std::vector<OpRecord> ops;
  const auto [begin, end] = trace.span(Phase::kForward);
  for (std::size_t i = begin; i < end; ++i) {
    const ProgramEvent& event = trace.program.events[i];
    if (event.kind == ProgramEvent::Kind::kOp) ops.push_back(trace.program.ops[event.index]);
  }
  return ops;
}

std::vector<OpRecord> attention_core_ops(const LayerTrace& trace) {
  std::vector<OpRecord> ops = forward_ops(trace);
  std::erase_if(ops, [](const OpRecord& op) { return op.label.part != ModelPart::kAttentionCore; });
  return ops;
}

std::vector<ProgramEvent> events_of_modules(const LayerTrace& trace, std::int64_t modules) {
  const std::vector<OpRecord> all = forward_ops(trace);
  const bool has_experts = std::any_of(all.begin(), all.end(), [](const OpRecord& op) {
    return op.label.part == ModelPart::kRouter;
  });
  std::vector<ProgramEvent> events;
  const auto [begin, end] = trace.span(Phase::kForward);
  for (std::size_t i = begin; i < end; ++i) {
    const ProgramEvent& event = trace.program.events[i];
    const bool is_op = event.kind == ProgramEvent::Kind::kOp;
    if (!is_op && event.kind != ProgramEvent::Kind::kCollective) continue;
    const ModelPart part = is_op ? trace.program.ops[event.index].label.part
                                 : trace.program.collectives[event.index].label.part;
    if (holds(modules, module_of(part, has_experts))) events.push_back(event);
  }
  return events;
}

void drop_modules(LayerMemory& block, const LayerTrace& trace, std::int64_t modules) {
  double bytes = 0;
  for (const ProgramEvent& event : events_of_modules(trace, modules)) {
    if (event.kind == ProgramEvent::Kind::kOp)
      bytes += result_bytes(trace.program.ops[event.index]);
  }
  drop(block, std::min(bytes, block.forward.left[kActivations]));
}

std::vector<OpRecord> every_second_product(const LayerTrace& trace) {
  std::vector<OpRecord> again;
  bool keeps_product = false;
  for (const OpRecord& op : forward_ops(trace)) {
    if (op.label.part == ModelPart::kAttentionCore) continue;
    if (is_linear_layer(op)) keeps_product = !keeps_product;
    if (!is_linear_layer(op) || !keeps_product) again.push_back(op);
  }
  return again;
}

void keep_half_of_products(LayerMemory& block, const LayerMemory& full, const LayerTrace& trace) {
  double kept = full.forward.left[kActivations];
  for (const OpRecord& op : forward_ops(trace)) {
    if (op.label.part == ModelPart::kAttentionCore) kept += result_bytes(op);
    if (is_linear_layer(op)) kept += result_bytes(op) / 2;
  }
  const double dropped = std::max(0.0, block.forward.left[kActivations] - kept);
  drop(block, dropped);
}

RecomputedWork recomputed_work(const LayerTrace& trace, const Plan& plan,
                               const SoftwareParts& parts) {
  if (plan.recompute == Recompute::kOps) return {every_second_product(trace), {}};
  if (plan.recompute != Recompute::kSelective) return {};
  const bool is_core_untraced =
      recomputes_core_attention(parts) && plan.attention == AttentionKind::kFlash;
  return {is_core_untraced ? attention_core_ops(trace) : std::vector<OpRecord>(),
          events_of_modules(trace, parts.recompute_modules)};
}

}  // namespace tpsim

// The pass that makes an op the kernels of the framework.
#include <utility>

#include "core/program/op_dims.h"
#include "costs/matmul_model.h"
#include "lowering/passes/lower.h"
#include "lowering/passes/unfused_kernels.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;

// Returns whether Transformer Engine launches the op, or its quantization, once per local expert.
bool is_launched_by_expert(const OpRecord& op, const SoftwareParts& parts) {
  const bool is_bias =
      op.key.kind == OpKind::kColumnBias || op.key.kind == OpKind::kColumnBiasGradient;
  return op.label.part == ModelPart::kExperts && !is_bias &&
         parts.expert_kernel != ExpertKernel::kOneKernel;
}

// Returns the factor on the time of a kernel that no setting explains. All passes of the head are
// described.
double uncalibrated_factor(const OpRecord& op, const StackSpec& stack) {
  if (is_flash(op.key.kind)) return 1 / stack.flash_speed;
  const ModelPart part = op.label.part;
  const bool as_traced = op.key.kind == OpKind::kMatmul || part == ModelPart::kGradientAccumulation;
  const bool at_head = part == ModelPart::kHead || part == ModelPart::kLoss;
  return as_traced || at_head ? 1 : stack.eager_traffic;
}

// Makes a grouped GEMM of experts one GEMM for each expert.
void loop_over_experts(LoweredOp& op) {
  const auto experts = static_cast<double>(std::exchange(dim_of(op.key, GemmDim::kBatch), 1));
  op.flops /= experts;
  op.bytes /= experts;
  op.repeats = experts;
}

void unfuse_phase(LoweredLayer& layer, const LayerInputs& inputs, Phase phase) {
  const StackSpec& stack = inputs.scenario.stack;
  const ModelSpec& model = inputs.scenario.model;
  const std::int64_t experts = local_experts(inputs);
  const bool is_saved = keeps_saved_tensors(layer, inputs.plan, phase);
  const bool recomputes_core = layer.kind == LayerKind::kBlock &&
                               inputs.plan.recompute == Recompute::kSelective &&
                               recomputes_core_attention(stack.parts);
  double saved_again = 0;  // bytes that recomputed ops save in backward
  rewrite(layer, phase, [&](const LoweredEvent& event, std::vector<LoweredEvent>& events) {
    events.push_back(event);
    if (event.kind != Kind::kOp) return;
    LoweredOp& op = layer.ops[event.index];
    const UnfusedKernels kernel = unfused_kernels_of(op, stack, model.activation_ops);
    const double kept = op.repeats * kernel.kept.value();
    op.traffic = kernel.traffic;
    op.launches = kernel.launches * (is_launched_by_expert(op, stack.parts) ? experts : 1);
    op.uncalibrated = uncalibrated_factor(op, stack);
    op.attention = stack.parts.attention_kernel;
    const bool in_loop = stack.parts.expert_kernel == ExpertKernel::kLooped;
    if (in_loop && is_grouped_product(op)) loop_over_experts(op);
    if (!is_saved) return;
    if (recomputes_core && op.label.part == ModelPart::kAttentionCore) {
      saved_again += kept;
    } else {
      hold(layer, events, kBackwardEnd, kept, "saved by plain ops");
    }
  });
  hold(layer, kBackwardStart, kBackwardEnd, saved_again, "saved by recomputed plain ops");
}

}  // namespace

void unfuse_kernels(LoweredLayer& layer, const LayerInputs& inputs) {
  for (const Phase phase : all_of<Phase>()) unfuse_phase(layer, inputs, phase);
}

}  // namespace tpsim

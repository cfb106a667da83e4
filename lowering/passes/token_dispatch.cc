// Tokens of experts. Buffers have the size of the busiest rank's tokens, and every op and
// collective over received tokens waits for this rank. DeepEP and HybridEP need no copy of a token
// per expert before dispatch or after combine. In a group of one rank they send nothing, and tokens
// are copied per expert.
#include <cmath>

#include "core/program/op_dims.h"
#include "lowering/passes/expert_load.h"
#include "lowering/passes/lower.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;

// Whether the op or collective processes received tokens, whose number differs between ranks.
bool waits_for_busiest(const Label& label) {
  return label.part == ModelPart::kExperts || label.part == ModelPart::kExpertActivation ||
         label.part == ModelPart::kPermute || label.part == ModelPart::kDispatch;
}

bool is_left_to_dispatcher(const OpRecord& op, const LayerInputs& inputs) {
  const bool copies =
      op.key.kind == OpKind::kPermuteTokens || op.key.kind == OpKind::kUnpermuteTokens;
  const bool sends = expert_tensor_ranks(inputs.plan) * inputs.plan.degrees.ep > 1;
  const Dispatcher by = inputs.scenario.stack.parts.dispatcher;
  return copies && sends && (by == Dispatcher::kDeepEp || by == Dispatcher::kHybridEp);
}

void size_buffers(LoweredLayer& layer, const LayerInputs& inputs) {
  const Scenario& scenario = inputs.scenario;
  const double size = buffered_load(scenario.stack, scenario.model, inputs.plan);
  if (!scenario.model.experts.dropless || size <= 1) return;
  for (LoweredAllocation& made : layer.allocations) {
    if (!holds_expert_tokens(made)) continue;
    made.bytes = std::llround(size * static_cast<double>(made.bytes));
  }
}

// Returns the bytes of the experts' results that the combination of tokens does not save, because
// router weights multiply the activations of experts instead.
double results_not_kept(const OpRecord& op) {
  const bool combines = op.key.kind == OpKind::kUnpermuteTokens && op.key.variant == 1;
  return combines ? slot_elements(op.key) * static_cast<double>(size_of(op.key.dtype)) : 0;
}

// For tensor-parallel experts with kUnfusedSeq. An all-to-all in the tensor group exchanges a
// rank's tokens for hidden slices of all tokens of the group, or back (one copy). An all-gather
// along the hidden dimension arrives rank by rank and is reordered row by row: split and
// concatenated (two copies). A reduce-scatter needs one copy before it.
void exchange_hidden_slices(LoweredLayer& layer, const LayerInputs& inputs, std::uint32_t index,
                            std::vector<LoweredEvent>& events) {
  const CollectiveRecord dispatch = layer.collectives[index];
  if (dispatch.label.part != ModelPart::kDispatch || dispatch.kind == CollectiveKind::kAllToAll) {
    return;
  }
  const Plan& plan = inputs.plan;
  const ModelSpec& model = inputs.scenario.model;
  const std::int64_t tokens = plan.micro_batch * model.seq / (plan.degrees.cp * plan.degrees.tp);
  const std::int64_t own = tokens * model.hidden * size_of(plan.dtype);
  const double copies = dispatch.kind == CollectiveKind::kAllGather ? 2 : 1;
  events.push_back(added(
      layer, LoweredCollective{{.kind = CollectiveKind::kAllToAll,
                                .group = GroupKind::kTensor,
                                .ranks = plan.degrees.tp,
                                .bytes = own,
                                .label = {ModelPart::kTensorParallel, "experts.hidden_slices"}}}));
  events.push_back(
      added(layer, LoweredCopy{.label = {ModelPart::kPermute, "experts.hidden_slices"},
                               .moved = Bytes(2 * (copies * static_cast<double>(dispatch.bytes) +
                                                   static_cast<double>(own))),
                               .kernels = copies + 1,
                               .adds_latency = true}));
}

// Replaces the events of a phase by those of the dispatcher.
void dispatch_in_phase(LoweredLayer& layer, const LayerInputs& inputs, Phase phase) {
  const SoftwareParts& parts = inputs.scenario.stack.parts;
  const bool keeps_less = parts.expert_weighting != ExpertWeighting::kCombine &&
                          keeps_saved_tensors(layer, inputs.plan, phase);
  rewrite(layer, phase, [&](const LoweredEvent& event, std::vector<LoweredEvent>& events) {
    if (event.kind == Kind::kOp) {
      const LoweredOp& op = layer.ops[event.index];
      const double bytes = keeps_less ? results_not_kept(op) : 0;
      if (!is_left_to_dispatcher(op, inputs)) events.push_back(event);
      hold(layer, events, kBackwardEnd, -bytes, "expert results");
      return;
    }
    if (event.kind == Kind::kCollective && parts.permute == PermuteKernel::kUnfusedSeq) {
      exchange_hidden_slices(layer, inputs, event.index, events);
    }
    events.push_back(event);
  });
}

}  // namespace

void dispatch_tokens(LoweredLayer& layer, const LayerInputs& inputs) {
  const ModelSpec& model = inputs.scenario.model;
  if (!has_experts(model)) return;
  size_buffers(layer, inputs);
  const double load = busiest_load(inputs.scenario.stack, model, inputs.plan);
  const Dispatcher dispatcher = inputs.scenario.stack.parts.dispatcher;
  for (LoweredOp& op : layer.ops) op.load = waits_for_busiest(op.label) ? load : 1;
  for (LoweredCollective& record : layer.collectives) {
    if (record.label.part == ModelPart::kDispatch) record.load = load;
    if (record.group == GroupKind::kExpert) record.dispatcher = dispatcher;
  }
  for (const Phase phase : all_of<Phase>()) dispatch_in_phase(layer, inputs, phase);
}

}  // namespace tpsim

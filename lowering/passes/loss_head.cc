// Logits and loss as frameworks compute them: copies of the logits in addition to those of the
// traced head, and the gather of logits over the tensor group.
#include <utility>

#include "core/program/op_dims.h"
#include "lowering/passes/lower.h"

namespace tpsim {
namespace {

// Bytes per logit in addition to the copies of the traced head: one in the plan's dtype and, for an
// fp32 loss, one in fp32.
struct HeadCopies {
  double kept = 0;         // from forward to backward
  double in_backward = 0;  // in addition to `kept`
};

HeadCopies copies_of(const StackSpec& stack, const Plan& plan) {
  const auto narrow = static_cast<double>(size_of(plan.dtype));
  const double traced = narrow + (copies_logits(stack.training) ? 4 : 0);
  constexpr double kChunks = 8;  // parts of the tokens
  const auto others = static_cast<double>(plan.degrees.tp - 1);
  switch (stack.parts.loss_head) {
    case LossHead::kVocabParallel:
    case LossHead::kVocabParallelFused:
    case LossHead::kOnline: return {};
    // The log-softmax is saved instead of its input. Backward also allocates the gradients of both,
    // in fp32 or, without fp32 logits, in the plan's dtype. Over a tensor group PyTorch computes
    // the gradient of log-softmax with plain ops (loss_parallel), which need a third tensor. With
    // kEager the training loop keeps the logits until backward ends; with kInModel the model frees
    // them.
    case LossHead::kInModel:
    case LossHead::kEager: {
      const double each = copies_logits(stack.training) ? 4 : narrow;
      const double logits = stack.parts.loss_head == LossHead::kEager ? narrow : 0;
      return {logits + each - traced, (others > 0 ? 3 : 2) * each};
    }
    case LossHead::kGathered: return {(others + 1) * (narrow + 4) - traced, (others + 1) * 8};
    case LossHead::kChunked: return {traced / kChunks - traced, 0};
    // The model's logits and the shifted copy that the kernel overwrites.
    case LossHead::kFused: return {2 * (copies_logits(stack.training) ? 4 : narrow) - traced, 0};
  }
  return {};
}

std::int64_t logits_of(const LoweredLayer& layer) {
  std::int64_t logits = 0;
  for_each_op(layer, Phase::kForward, [&](const LoweredOp& op) {
    if (op.key.kind == OpKind::kVocabMax)
      logits = dim_of(op.key, RowDim::kRows) * dim_of(op.key, RowDim::kCols);
  });
  return logits;
}

// For LossHead::kGathered: the tensor group all-gathers the logits, and every rank computes the
// loss over the full vocab.
void gather_logits(LoweredLayer& head, const Plan& plan, std::int64_t logits) {
  const LoweredCollective gather{{.kind = CollectiveKind::kAllGather,
                                  .group = GroupKind::kTensor,
                                  .ranks = plan.degrees.tp,
                                  .bytes = plan.degrees.tp * logits * size_of(plan.dtype),
                                  .label = {ModelPart::kLoss, "head.gather"}}};
  const auto whole = static_cast<double>(plan.degrees.tp);
  bool is_gathered = false;
  const auto gather_before_loss = [&](const LoweredEvent& event,
                                      std::vector<LoweredEvent>& events) {
    const bool is_loss = event.kind == LoweredEvent::Kind::kOp &&
                         head.ops[event.index].label.part == ModelPart::kLoss;
    if (is_loss && !std::exchange(is_gathered, true)) events.push_back(added(head, gather));
    events.push_back(event);
  };
  rewrite(head, Phase::kForward, gather_before_loss);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    for_each_op(head, phase, [&](LoweredOp& op) {
      if (op.label.part == ModelPart::kLoss) op.repeats = whole;
    });
  }
}

}  // namespace

void compute_loss(LoweredLayer& layer, const LayerInputs& inputs) {
  if (layer.kind != LayerKind::kHead) return;
  const StackSpec& stack = inputs.scenario.stack;
  const Plan& plan = inputs.plan;
  const std::int64_t logits = logits_of(layer);
  const HeadCopies copies = copies_of(stack, plan);
  const auto count = static_cast<double>(logits);
  hold(layer, kForwardStart, kBackwardEnd, copies.kept * count, "logits");
  hold(layer, kBackwardStart, kBackwardEnd, copies.in_backward * count, "gradients of logits");
  const bool gathers = stack.parts.loss_head == LossHead::kGathered && plan.degrees.tp > 1;
  if (gathers) gather_logits(layer, plan, logits);
}

}  // namespace tpsim

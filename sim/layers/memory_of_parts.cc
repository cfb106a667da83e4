#include "sim/layers/memory_of_parts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/software/optimizer_kinds.h"
#include "sim/layers/low_precision.h"
#include "sim/layers/plain_kernels.h"
#include "sim/layers/recomputed_ops.h"

namespace tpsim {
namespace {

using memory_index::kActivations;

void raise(MemoryChange& change, double bytes) {
  change.highest[kActivations] += bytes;
  change.each[kActivations] += bytes;
}

// Allocated in forward, freed in backward.
void keep_for_backward(LayerMemory& memory, double bytes) {
  memory.forward.left[kActivations] += bytes;
  raise(memory.forward, bytes);
  memory.backward.left[kActivations] -= bytes;
}

// Returns the bytes that plain kernels of the ops save for backward.
double kept_by_plain_kernels(const std::vector<OpRecord>& ops, const Scenario& scenario) {
  double kept = 0;
  for (const OpRecord& op : ops) {
    kept += plain_kernel(op, scenario.stack, scenario.model.activation_ops).kept.value();
  }
  return kept;
}

bool recomputes_core(const Plan& plan, const StackSpec& stack) {
  return plan.recompute == Recompute::kSelective && recomputes_core_attention(stack.parts);
}

// Returns the bytes of the experts' results that are not saved, because router weights multiply the
// experts' activations instead. 0 if the weights multiply the results.
double results_not_kept(const LayerTrace& trace, const StackSpec& stack) {
  if (stack.parts.expert_weighting == ExpertWeighting::kCombine) return 0;
  double bytes = 0;
  for (const OpRecord& op : forward_ops(trace)) {
    const OpDims& d = op.key.dims;
    if (op.key.kind != OpKind::kUnpermuteTokens) continue;
    bytes += static_cast<double>(d[1] * d[2] * d[3] * size_of(op.key.dtype));
  }
  return bytes;
}

// Bytes per logit in addition to the copies of the traced head: one in the plan's dtype and, for an
// fp32 loss, one in fp32.
struct HeadCopies {
  double kept = 0;         // from forward to backward
  double in_backward = 0;  // in addition to `kept`
};

HeadCopies copies_of(const StackSpec& stack, const Plan& plan) {
  const auto narrow = static_cast<double>(size_of(plan.dtype));
  const double traced = narrow + (stack.training.wide_logits ? 4 : 0);
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
      const double each = stack.training.wide_logits ? 4 : narrow;
      const double logits = stack.parts.loss_head == LossHead::kEager ? narrow : 0;
      return {logits + each - traced, (others > 0 ? 3 : 2) * each};
    }
    case LossHead::kGathered: return {(others + 1) * (narrow + 4) - traced, (others + 1) * 8};
    case LossHead::kChunked: return {traced / kChunks - traced, 0};
    // The model's logits and the shifted copy that the kernel overwrites.
    case LossHead::kFused: return {2 * (stack.training.wide_logits ? 4 : narrow) - traced, 0};
  }
  return {};
}

// Extra bytes of a block's saved input, which autocast keeps in fp32.
double wider_checkpoint(const LayerTrace& trace, const StackSpec& stack) {
  if (stack.parts.master_weights != MasterWeights::kAutocast) return 0;
  for (const OpRecord& op : trace.program.ops) {
    if (op.key.kind != OpKind::kNormForward || op.key.dtype == DType::kFloat32) continue;
    return 2.0 * static_cast<double>(op.key.dims[0] * op.key.dims[1]);
  }
  return 0;
}

}  // namespace

std::int64_t logits_of(const LayerTrace& trace) {
  for (const OpRecord& op : trace.program.ops) {
    if (op.key.kind == OpKind::kVocabMax) return op.key.dims[0] * op.key.dims[1];
  }
  return 0;
}

void narrow_optimizer(Program& program, const StackSpec& stack) {
  const bool has_copy = stack.parts.master_weights != MasterWeights::kNone;
  for (AllocationRecord& allocation : program.allocations) {
    if (allocation.category != MemoryCategory::kOptimizer) continue;
    if (allocation.label == name_of(StateTensor::kMaster)) {
      if (!has_copy) allocation.bytes = 0;
      continue;
    }
    allocation.bytes =
        allocation.bytes / size_of(DType::kFloat32) * size_of(stack.parts.optimizer_dtype);
  }
}

void add_memory_of_parts(LayerMemory& memory, LayerKind kind, const LayerTrace& trace,
                         const Plan& plan, const Scenario& scenario) {
  const StackSpec& stack = scenario.stack;
  if (kind == LayerKind::kHead) {
    const HeadCopies copies = copies_of(stack, plan);
    const auto logits = static_cast<double>(logits_of(trace));
    keep_for_backward(memory, copies.kept * logits);
    raise(memory.backward, copies.in_backward * logits);
  }
  double kept =
      kept_by_plain_kernels(forward_ops(trace), scenario) - results_not_kept(trace, stack);
  if (kind == LayerKind::kBlock) {
    const auto [begin, end] = trace.span(Phase::kForward);
    kept -= saved_input_bytes(scenario, plan, trace.program, begin, end);
    // The buffer grows to the largest GEMM and stays.
    const std::size_t last = trace.span(Phase::kBackward).second;
    const double rounded = rounded_operand_bytes(scenario, plan, trace.program, begin, last);
    raise(memory.forward, rounded);
    raise(memory.backward, rounded);
  }
  if (kind == LayerKind::kBlock && recomputes_core(plan, stack)) {
    const double again = kept_by_plain_kernels(attention_core_ops(trace), scenario);
    raise(memory.backward, again);
    kept -= again;
  }
  if (plan.recompute == Recompute::kFull && kind == LayerKind::kBlock) {
    raise(memory.backward, kept);  // allocated in backward again and freed there
    keep_for_backward(memory, wider_checkpoint(trace, stack));
  } else {
    keep_for_backward(memory, kept);
  }
}

}  // namespace tpsim

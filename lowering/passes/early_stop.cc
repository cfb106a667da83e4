// Early stop of PyTorch's non-reentrant activation checkpointing: forward runs again only until the
// last tensor that backward needs exists (torch/utils/checkpoint.py, _StopRecomputationError in
// _recomputation_hook). Autograd saves the operands of a GEMM before the GEMM runs, so the last
// GEMM of a block, the collective of its result and the residual are not repeated.
#include <algorithm>

#include "lowering/passes/lower.h"
#include "lowering/passes/recompute.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;
using Events = std::vector<LoweredEvent>;

// Whether backward does not need the result of an op at the end of forward.
bool is_unneeded(OpKind kind) {
  return kind == OpKind::kMatmul || kind == OpKind::kBiasResidual || kind == OpKind::kCopyMatrices;
}

// Returns the events [first, last] from the first op that does not run again to the end of forward.
// Empty if every op runs again.
struct Skipped {
  std::size_t first = 1, last = 0;
};
Skipped skipped_events(const LoweredLayer& layer, const Events& backward) {
  Skipped skipped;
  for (std::size_t i = backward.size(); i-- > 0;) {
    if (backward[i].kind != Kind::kOp) continue;
    const LoweredOp& op = layer.ops[backward[i].index];
    if (!op.runs_again) continue;
    if (!is_unneeded(op.key.kind)) break;
    skipped.first = i;
    skipped.last = std::max(skipped.last, i);
    if (op.key.kind == OpKind::kMatmul) break;
  }
  return skipped;
}

}  // namespace

bool stops_early(const StackSpec& stack, const ModelSpec& block) {
  // Dropout saves its mask, and a weighted sum of expert results saves them.
  const bool saves_results =
      has_experts(block) && stack.parts.expert_weighting == ExpertWeighting::kCombine;
  return stack.checkpoint_stops_early && block.hidden_dropout == 0 && !saves_results;
}

void stop_recompute_early(LoweredLayer& layer, const LayerInputs& inputs) {
  const bool is_recomputed =
      layer.kind == LayerKind::kBlock && inputs.plan.recompute == Recompute::kFull;
  if (!is_recomputed || !stops_early(inputs.scenario.stack, inputs.block)) return;
  Events& events = layer.phase(Phase::kBackward).events;
  const auto [first, last] = skipped_events(layer, events);
  Events kept;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const bool moves_memory = events[i].kind == Kind::kAllocate || events[i].kind == Kind::kFree;
    if (i < first || i > last || moves_memory) kept.push_back(events[i]);
  }
  events = std::move(kept);
}

}  // namespace tpsim

// Early stop of PyTorch's non-reentrant activation checkpointing: forward runs again only until the
// last tensor that backward needs exists (torch/utils/checkpoint.py, _StopRecomputationError in
// _recomputation_hook). Autograd saves the operands of a GEMM before the GEMM runs, so the last
// GEMM of a block, the collective of its result and the residual are not repeated.
#include <algorithm>
#include <cmath>

#include "lowering/passes/lower.h"
#include "lowering/passes/recompute.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;
using Events = std::vector<LoweredEvent>;

bool is_same(const LoweredOp& a, const LoweredOp& b) {
  return a.key == b.key && a.label.text == b.label.text;
}

// Returns the number of ops at the end of forward whose results backward does not need.
std::size_t unneeded_ops(const std::vector<const LoweredOp*>& forward) {
  std::size_t count = 0;
  for (auto op = forward.rbegin(); op != forward.rend(); ++op) {
    const OpKind kind = (*op)->key.kind;
    const bool is_gemm = kind == OpKind::kMatmul;
    if (!is_gemm && kind != OpKind::kBiasResidual && kind != OpKind::kCopyMatrices) break;
    ++count;
    if (is_gemm) break;
  }
  return count;
}

std::vector<const LoweredOp*> ops_of(const LoweredLayer& layer, LayerPhase phase) {
  std::vector<const LoweredOp*> ops;
  for_each_op(layer, phase, [&](const LoweredOp& op) { ops.push_back(&op); });
  return ops;
}

// Positions of the events of forward's ops that run again in backward. Other ops of backward may
// lie between.
std::vector<std::size_t> repeated_ops(const LoweredLayer& layer,
                                      const std::vector<const LoweredOp*>& forward) {
  const Events& events = layer.phase(LayerPhase::kBackward).events;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < events.size() && places.size() < forward.size(); ++i) {
    const bool is_op = events[i].kind == Kind::kOp;
    if (is_op && is_same(layer.ops[events[i].index], *forward[places.size()])) places.push_back(i);
  }
  return places;
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
  const std::vector<const LoweredOp*> forward = ops_of(layer, LayerPhase::kForward);
  const std::vector<std::size_t> again = repeated_ops(layer, forward);
  const std::size_t unneeded = unneeded_ops(forward);
  if (unneeded == 0 || again.size() < forward.size()) return;
  const std::size_t first = again[again.size() - unneeded], last = again.back();
  Events& events = layer.phase(LayerPhase::kBackward).events;
  Events kept;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const bool moves_memory = events[i].kind == Kind::kAllocate || events[i].kind == Kind::kFree;
    if (i < first || i > last || moves_memory) kept.push_back(events[i]);
  }
  events = std::move(kept);
}

}  // namespace tpsim

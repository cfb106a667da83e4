// Megatron-Core's paged stash: the buffers of saved expert tokens, which have the size of the
// busiest rank's tokens, are compacted after forward and restored before backward. The copies run
// in a separate stream but take memory bandwidth from concurrent ops, so their whole time counts.
#include <algorithm>

#include "lowering/passes/expert_load.h"
#include "lowering/passes/lower.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;

// Returns the bytes of the buffers of expert tokens that forward leaves allocated.
double saved_buffers(const LoweredLayer& layer, std::int64_t recomputed_modules) {
  double bytes = 0;
  for (const LoweredEvent& event : layer.phase(Phase::kForward).events) {
    if (event.kind != Kind::kAllocate && event.kind != Kind::kFree) continue;
    const LoweredAllocation& made = layer.allocations[event.index];
    const bool is_made_again = made.role == AllocationRole::kExpertActivation &&
                               holds(recomputed_modules, bit(RecomputeModule::kExpertActivation));
    if (!holds_expert_tokens(made) || is_made_again) continue;
    bytes += (event.kind == Kind::kAllocate ? 1 : -1) * static_cast<double>(made.bytes);
  }
  return bytes;
}

}  // namespace

void stash_tokens(LoweredLayer& layer, const LayerInputs& inputs) {
  const SoftwareParts& parts = inputs.scenario.stack.parts;
  if (parts.expert_stash == kNoStash || layer.kind != LayerKind::kBlock) return;
  const bool recomputes = inputs.plan.recompute == Recompute::kSelective;
  const std::int64_t modules = recomputes ? parts.recompute_modules : 0;
  if (holds(modules, bit(RecomputeModule::kMoe))) return;
  const double buffers = saved_buffers(layer, modules);
  if (buffers <= 0) return;
  const double tokens = buffers / std::max(1.0, buffered_load(inputs.scenario.stack,
                                                              inputs.scenario.model, inputs.plan));
  const double stash =
      tokens * static_cast<double>(parts.expert_stash) / static_cast<double>(kBalancedLoad);
  hold(layer, kForwardStart, kBackwardEnd, stash, "experts.stash");
  hold(layer, kForwardEnd, kBackwardStart, -buffers, "experts.buffers");
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    layer.phase(phase).events.push_back(added(
        layer,
        LoweredCopy{.label = {ModelPart::kPermute, "experts.stash"}, .moved = Bytes(2 * tokens)}));
  }
}

}  // namespace tpsim

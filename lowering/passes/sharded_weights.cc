// Gathers of sharded weights. DeepSpeed gathers the weights of experts that run in a loop matrix by
// matrix. FSDP 2 and DeepSpeed gather into one buffer and copy the weights from there.
#include <cmath>

#include "lowering/passes/lower.h"
#include "lowering/passes/shard_groups.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;

bool is_gather(const LoweredCollective& record) {
  return record.label.part == ModelPart::kParameterGather && record.bytes > 0;
}

void gather_by_matrix(LoweredLayer& layer, const LayerInputs& inputs) {
  const auto modules =
      static_cast<double>(mlp_matrices(inputs.scenario.model) * local_experts(inputs));
  for (LoweredCollective& record : layer.collectives) {
    if (!is_gather(record)) continue;
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

}  // namespace

void gather_sharded_weights(LoweredLayer& layer, const LayerInputs& inputs) {
  const StackSpec& stack = inputs.scenario.stack;
  set_sync(layer, stack);
  const bool in_loop = stack.parts.expert_kernel == ExpertKernel::kLooped &&
                       stack.host.per_gather > Seconds() && has_experts(inputs.scenario.model);
  if (in_loop) gather_by_matrix(layer, inputs);
  if (!stack.copies_gathered_weights) return;
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    copy_gathered(layer, phase);
  }
}

}  // namespace tpsim

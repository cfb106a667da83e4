#include "lowering/passes/attention_heads.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/program/op_dims.h"
#include "core/scenario/measured_stack.h"
#include "lowering/passes/lower.h"

namespace tpsim {

std::int64_t heads_per_group(const AttentionShape& attention, std::int64_t tp) {
  const std::int64_t kv_heads = std::max<std::int64_t>(1, attention.kv_heads / tp);
  return std::max<std::int64_t>(1, attention.heads / tp / kv_heads);
}

void merge_head_groups(LoweredLayer& layer, std::int64_t group) {
  if (group == 1) return;
  std::map<std::pair<OpKey, std::uint32_t>, std::int64_t> seen;
  // Merges the op into the first of its group. Returns whether the op is dropped.
  const auto merges = [&](const LoweredEvent& event) {
    if (event.kind != LoweredEvent::Kind::kOp) return false;
    LoweredOp& op = layer.ops[event.index];
    if (op.key.kind != OpKind::kMatmul || op.label.part != ModelPart::kAttentionCore) return false;
    OpKey key = op.key;
    key.variant &= static_cast<std::uint8_t>(~kAccumulate);
    if (seen[{key, op.input}]++ % group != 0) return true;
    dim_of(op.key, GemmDim::kBatch) *= group;
    op.flops *= static_cast<double>(group);
    op.bytes *= static_cast<double>(group);
    return false;
  };
  for (LoweredPhase& phase : layer.phases) std::erase_if(phase.events, merges);
}

// tpsim's own stack runs the GEMMs of the trace.
void merge_attention_heads(LoweredLayer& layer, const LayerInputs& inputs) {
  if (inputs.scenario.stack.name == own_stack(inputs.scenario.profile)) return;
  merge_head_groups(layer, heads_per_group(inputs.block.attention, inputs.plan.degrees.tp));
}

}  // namespace tpsim

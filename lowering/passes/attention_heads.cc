#include "lowering/passes/attention_heads.h"

#include <algorithm>
#include <vector>

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
  struct Seen {
    OpKey key;
    std::uint32_t input = 0;
    std::int64_t count = 0;
  };
  std::vector<Seen> seen;  // few, and mostly in runs
  const auto count_of = [&](const OpKey& key, std::uint32_t input) -> std::int64_t& {
    for (auto one = seen.rbegin(); one != seen.rend(); ++one) {
      if (one->input == input && one->key == key) return one->count;
    }
    return seen.emplace_back(Seen{key, input}).count;
  };
  // Merges the op into the first of its group. Returns whether the op is dropped.
  const auto merges = [&](const LoweredEvent& event) {
    if (event.kind != LoweredEvent::Kind::kOp) return false;
    LoweredOp& op = layer.ops[event.index];
    if (op.key.kind != OpKind::kMatmul || op.label.part != ModelPart::kAttentionCore) return false;
    OpKey key = op.key;
    key.variant &= static_cast<std::uint8_t>(~kAccumulate);
    if (count_of(key, op.input)++ % group != 0) return true;
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

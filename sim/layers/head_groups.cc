#include "sim/layers/head_groups.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

namespace tpsim {

std::int64_t heads_per_group(const AttentionShape& attention, std::int64_t tp) {
  const std::int64_t kv_heads = std::max<std::int64_t>(1, attention.kv_heads / tp);
  return std::max<std::int64_t>(1, attention.heads / tp / kv_heads);
}

void merge_head_groups(LayerTrace& trace, std::int64_t group) {
  if (group == 1) return;
  Program& program = trace.program;
  std::map<std::pair<OpKey, std::string_view>, std::int64_t> seen;
  // Merges the op into the first of its group. Returns whether the op is dropped.
  const auto merges = [&](OpRecord& op) {
    if (op.key.kind != OpKind::kMatmul || op.label.part != ModelPart::kAttentionCore) return false;
    OpKey key = op.key;
    key.variant &= static_cast<std::uint8_t>(~kAccumulate);
    if (seen[{key, op.label.text}]++ % group != 0) return true;
    op.key.dims[0] *= group;
    op.flops *= static_cast<double>(group);
    op.bytes *= static_cast<double>(group);
    return false;
  };
  const std::array limits{&trace.forward, &trace.forward_end, &trace.backward, &trace.backward_end,
                          &trace.end};
  std::array<std::size_t, limits.size()> moved{};
  std::size_t kept = 0;
  for (std::size_t i = 0; i <= program.events.size(); ++i) {
    for (std::size_t j = 0; j < limits.size(); ++j) {
      if (*limits[j] == i) moved[j] = kept;
    }
    if (i == program.events.size()) break;
    const ProgramEvent event = program.events[i];
    if (event.kind == ProgramEvent::Kind::kOp && merges(program.ops[event.index])) continue;
    program.events[kept++] = event;
  }
  program.events.resize(kept);
  for (std::size_t j = 0; j < limits.size(); ++j) *limits[j] = moved[j];
}

}  // namespace tpsim

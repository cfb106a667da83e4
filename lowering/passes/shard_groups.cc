#include "lowering/passes/shard_groups.h"

#include <algorithm>

#include "core/scenario/node_map.h"

namespace tpsim {

std::int64_t shard_ranks(const Scenario& scenario, const Plan& plan) {
  return shard_ranks(plan, node_map(scenario, plan), scenario.stack.parts.shard_group);
}

std::int64_t shard_ranks(const Plan& plan, const NodeMap& nodes, std::int64_t shard_group) {
  const std::int64_t all = data_ranks(plan);
  if (shard_group == kShardOverAll || plan.zero == 0) return all;
  const GroupPlacement data = place_group(plan, GroupKind::kData, nodes);
  const std::int64_t tp = plan.degrees.tp;
  const std::int64_t shards =
      shard_group == kShardOverNode ? data.ranks_per_node : shard_group / tp;
  const std::int64_t of_experts = expert_tensor_ranks(plan) * plan.degrees.ep;
  const bool whole = shard_group == kShardOverNode || shard_group % tp == 0;
  const bool divides = whole && shards > 1 && all % shards == 0 && shards % plan.degrees.cp == 0 &&
                       shards * plan.degrees.tp % of_experts == 0;
  return divides ? std::min(shards, all) : all;
}

GroupPlacement shard_placement(const GroupPlacement& data, std::int64_t shards) {
  GroupPlacement placement = data;
  placement.ranks = shards;
  placement.nodes = (shards + data.ranks_per_node - 1) / data.ranks_per_node;
  placement.ranks_per_node = std::min(shards, data.ranks_per_node);
  // Shard groups that span nodes share the NICs; groups inside a node do not use NICs.
  placement.groups_per_node = placement.nodes > 1 ? data.groups_per_node : 0;
  return placement;
}

GroupPlacement replica_placement(const GroupPlacement& data, std::int64_t shards) {
  const std::int64_t side_by_side = std::min(shards, data.ranks_per_node);
  GroupPlacement placement = data;
  placement.ranks = data.ranks / shards;
  placement.ranks_per_node = std::max<std::int64_t>(1, data.ranks_per_node / shards);
  placement.nodes = std::max<std::int64_t>(
      1, (placement.ranks + placement.ranks_per_node - 1) / placement.ranks_per_node);
  placement.groups_per_node =
      placement.nodes > 1 ? std::max<std::int64_t>(1, data.groups_per_node) * side_by_side : 0;
  return placement;
}

bool has_shard_groups(const StackSpec& stack) { return stack.parts.shard_group != kShardOverAll; }

bool shards_over_node(const StackSpec& stack) { return stack.parts.shard_group == kShardOverNode; }

void set_sync(LoweredLayer& layer, const StackSpec& stack) {
  for (LoweredCollective& record : layer.collectives) {
    const bool moves_slices = record.label.part == ModelPart::kDataParallelReduction ||
                              record.label.part == ModelPart::kParameterGather;
    if (moves_slices) record.sync = stack.parts.data_parallel_sync;
  }
}

}  // namespace tpsim

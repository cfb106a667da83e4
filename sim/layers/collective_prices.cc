// Prices collectives and P2P transfers of a plan's groups, in seconds.
#include "core/scenario/node_map.h"
#include "lowering/passes/shard_groups.h"
#include "lowering/passes/step_habits.h"
#include "sim/layers/dispatch_time.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

const GroupPlacement& LayerPricer::placed(const Plan& plan, GroupKind group) const {
  Placed& last = placed_[static_cast<std::size_t>(group)];
  if (last.degrees != plan.degrees || last.rank_order != plan.rank_order) {
    last = {plan.degrees, plan.rank_order, place_group(plan, group, node_map(scenario(), plan))};
  }
  return last.placement;
}

Seconds LayerPricer::collective(const LoweredCollective& record, const Plan& plan) const {
  if (record.kind == CollectiveKind::kReceive) return Seconds();
  if (record.copied + record.passed > 0)
    return host_time(Bytes(record.copied), Bytes(record.passed));
  const Bytes bytes(static_cast<double>(record.bytes));
  const GroupPlacement& group = placed(plan, record.group);
  if (record.group == GroupKind::kExpert) {
    return dispatch_time(scenario().model.experts, collectives(), record, group);
  }
  const std::int64_t shards = shard_ranks(scenario(), plan);
  const bool in_shards = record.group == GroupKind::kData && shards < group.ranks;
  const GroupPlacement inner = in_shards ? shard_placement(group, shards) : group;
  const bool owned = record.sync == DataParallelSync::kOwners;
  const bool reduces =
      record.kind != CollectiveKind::kAllGather && record.kind != CollectiveKind::kBroadcast;
  if (owned && reduces) {
    return collectives().price(CollectiveKind::kAllReduce, bytes, group);
  }
  Seconds time =
      record.sync == DataParallelSync::kSlices
          ? collectives().price_owner_broadcasts(bytes, inner)
          : collectives().price(owned ? CollectiveKind::kBroadcast : record.kind, bytes, inner);
  // With shard groups smaller than the data-parallel group, gradient shards are also all-reduced
  // over the ranks with the same shard.
  if (in_shards && reduces) {
    time +=
        collectives().price(CollectiveKind::kAllReduce, (1 / static_cast<double>(shards)) * bytes,
                            replica_placement(group, shards));
  }
  return time;
}

TransferCost LayerPricer::price_transfer(const Program& program, const Plan& plan) const {
  TransferCost cost;
  const TransferPlacement placed = place_transfers(plan, node_map(scenario(), plan));
  const double leaving = placed.share_leaving_node;
  for (const CollectiveRecord& record : program.collectives) {
    const Bytes bytes(static_cast<double>(record.bytes));
    if (record.kind == CollectiveKind::kSend) {
      cost.wire += leaving * collectives().price_point_to_point(
                                 bytes, true, placed.senders_per_node, placed.node) +
                   (1 - leaving) * collectives().price_point_to_point(bytes, false, 0);
    } else if (record.kind == CollectiveKind::kAllGather) {
      cost.gather += collective({record}, plan);
    }
  }
  cost.wire += scenario().stack.host.per_transfer;
  cost.bytes = static_cast<double>(program.allocations.front().bytes);
  return cost;
}

Seconds LayerPricer::global_norm(const Plan& plan) {
  if (!clips_gradients(scenario().stack)) return Seconds();
  return collectives().price(CollectiveKind::kAllReduce, Bytes(4), placed(plan, GroupKind::kWorld));
}

}  // namespace tpsim

// ZeRO over groups smaller than the data-parallel group (PyTorch's hybrid sharding, InternEvo's
// zero1 size). Neighboring ranks form a group that shards the state. Gradient shards are also
// all-reduced over the ranks with the same shard.
#pragma once

#include "core/plan/rank_layout.h"
#include "core/scenario/scenario.h"
#include "lowering/passes/lowered_layer.h"

namespace tpsim {

// Returns the number of ranks that share one copy of the sharded state. Equals data_ranks() for
// ZeRO 0, if the stack does not set a group, or if the group size does not divide the ranks.
std::int64_t shard_ranks(const Scenario& scenario, const Plan& plan);
// The same for the part's value `shard_group`. `nodes`: those that the job uses.
std::int64_t shard_ranks(const Plan& plan, const NodeMap& nodes, std::int64_t shard_group);

// Returns the placement of a group of `shards` neighboring data-parallel ranks. All groups
// communicate at once.
GroupPlacement shard_placement(const GroupPlacement& data, std::int64_t shards);
// Returns the placement of the ranks with the same shard.
GroupPlacement replica_placement(const GroupPlacement& data, std::int64_t shards);

// Whether groups smaller than the data-parallel group may share the state.
bool has_shard_groups(const StackSpec& stack);
// Whether other ranks of a node may hold other shards, so that memory depends on the rank order.
bool shards_over_node(const StackSpec& stack);
// Sets the collectives with which the ranks reduce gradients and gather weights.
void set_sync(LoweredLayer& layer, const StackSpec& stack);

}  // namespace tpsim

// ZeRO over groups smaller than the data-parallel one (PyTorch's hybrid sharding, InternEvo's zero1
// size): shards inside a group of ranks that lie side by side, gradients of a shard added up over
// the ranks that hold the same one.
#pragma once

#include "core/plan/rank_layout.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Ranks that share out one copy of what ZeRO shards: data_ranks() where the stack says nothing
// else, ZeRO is 0, or the data-parallel ranks do not divide into such groups.
std::int64_t shard_ranks(const Scenario& scenario, const Plan& plan);

// One group of so many neighbours in a data-parallel group, all of them at work.
GroupPlacement shard_placement(const GroupPlacement& data, std::int64_t shards);
// The ranks that hold the same shard.
GroupPlacement replica_placement(const GroupPlacement& data, std::int64_t shards);

}  // namespace tpsim

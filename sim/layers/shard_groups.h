// ZeRO over groups smaller than the data-parallel group (PyTorch's hybrid sharding, InternEvo's
// zero1 size). Weights are sharded inside a group of neighbouring ranks. Gradients of a shard are
// all-reduced over the ranks with the same shard.
#pragma once

#include "core/plan/rank_layout.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Ranks that share one copy of the sharded state. Equals data_ranks() if the stack does not set a
// group, for ZeRO 0, or if the data-parallel ranks do not divide into such groups.
std::int64_t shard_ranks(const Scenario& scenario, const Plan& plan);

// One group of `shards` neighbours in a data-parallel group; all groups work at once.
GroupPlacement shard_placement(const GroupPlacement& data, std::int64_t shards);
// The ranks with the same shard.
GroupPlacement replica_placement(const GroupPlacement& data, std::int64_t shards);

}  // namespace tpsim

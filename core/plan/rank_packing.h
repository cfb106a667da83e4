// Packs the ranks of a plan onto nodes with different numbers of GPUs or NICs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/machine/cluster_spec.h"
#include "core/plan/plan.h"

namespace tpsim {

// The nodes of a plan's ranks, as indices of ClusterSpec::unequal_nodes.
struct RankNodes {
  // Plans that the arrangement is for; all zeros: every plan with as many ranks.
  ParallelDegrees degrees{0, 0, 0, 0, 0};
  RankOrder rank_order{};
  std::vector<std::int32_t> node_of;

  bool suits(const Plan& plan) const;
};

// Returns the sizes of blocks of consecutive ranks that communicate most, from one rank to the
// groups of experts, stages or replicas. Each size is a multiple of the one before.
std::vector<std::int64_t> block_sizes(const Plan& plan);

// Returns the nodes by their GPUs; equal ones in their order.
std::vector<std::size_t> by_size(const std::vector<NodeShape>& nodes, bool is_largest_first);

// Places blocks of ranks on nodes, the largest of `blocks` first. Nodes are filled in `order`. A
// block that fits on no node is split into the next smaller size. `blocks` starts with 1. Returns
// the node of each rank, then those of the idle GPUs. The nodes must have a GPU for each rank.
std::vector<std::int32_t> packed(const Plan& plan, const std::vector<NodeShape>& nodes,
                                 const std::vector<std::int64_t>& blocks,
                                 const std::vector<std::size_t>& order);

}  // namespace tpsim

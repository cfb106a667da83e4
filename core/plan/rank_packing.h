// Which rank runs on which of several nodes that differ.
#pragma once

#include <algorithm>
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

// Places blocks of ranks on nodes, the largest of `blocks` first. Nodes are filled in the order
// `order`. A block that fits on no node is split into the next smaller size. `blocks` starts with
// 1. The nodes must have a GPU for each rank.
std::vector<std::int32_t> packed(std::int64_t ranks, const std::vector<std::int64_t>& blocks,
                                 std::vector<std::int64_t> free_gpus,
                                 const std::vector<std::size_t>& order);
// The same with all block sizes of the plan, and the largest node first.
std::vector<std::int32_t> packed(const Plan& plan, const std::vector<NodeShape>& nodes);

// Returns the nodes sorted by `is_before`, equal ones in their order.
template <class Before>
std::vector<std::size_t> node_order(const std::vector<NodeShape>& nodes, Before is_before) {
  std::vector<std::size_t> order(nodes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return is_before(nodes[a], nodes[b]); });
  return order;
}

}  // namespace tpsim

// Maps plan coordinates to global ranks, and groups to nodes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/machine/cluster_spec.h"
#include "core/plan/plan.h"
#include "core/program/program.h"

namespace tpsim {

struct RankCoordinates {
  std::int64_t tp = 0;
  std::int64_t dp = 0;
  std::int64_t pp = 0;
  std::int64_t cp = 0;
  friend bool operator==(const RankCoordinates&, const RankCoordinates&) = default;
};

// Default order: ((pp * DP + dp) * CP + cp) * TP + tp, Megatron's tp-cp-dp-pp. RankOrder::kTpPpDp:
// ((dp * PP + pp) * CP + cp) * TP + tp, Megatron's tp-cp-pp-dp.
std::int64_t global_rank(const Plan& plan, const RankCoordinates& at);
RankCoordinates coordinates(const Plan& plan, std::int64_t rank);

// Returns the global ranks of the group of this kind that contains `rank`, ordered by their index
// in the group. The index is:
//   tensor tp; context cp; pipeline pp; world the global rank
//   data         dp * CP + cp: by replica, then by part of the sequence
//   expert_tensor, expert, expert_data: the coordinates in ETP x EP x EDP, first innermost, of the
//                position (dp * CP + cp) * TP + tp in the stage; with ETP = TP and EP = 1 these
//                groups are tensor, a single rank, and data
//   model        pp * TP + tp
//   embedding    the first and the last stage; for ranks of other stages the rank alone
std::vector<std::int64_t> group_members(const Plan& plan, GroupKind group, std::int64_t rank);

// Index of a rank in its group, and the group's size. Does not build the list of members.
struct GroupPosition {
  std::int64_t index = 0;
  std::int64_t size = 1;
};
GroupPosition group_position(const Plan& plan, GroupKind group, std::int64_t rank);
// Returns the size of the groups of one kind. For kEmbedding: that of the first and last stage.
std::int64_t group_size(const Plan& plan, GroupKind group);

// The nodes of all ranks. Of equal nodes, ranks fill one after another.
class NodeMap {
 public:
  NodeMap(std::int64_t gpus_per_node)  // NOLINT(google-explicit-constructor)
      : gpus_per_node_(gpus_per_node) {}
  // Nodes that differ: `node_of` has the node of each rank as an index of `nodes`.
  NodeMap(std::vector<NodeShape> nodes, std::vector<std::int32_t> node_of)
      : nodes_(std::move(nodes)), node_of_(std::move(node_of)) {}

  bool is_equal() const { return nodes_.empty(); }
  std::int64_t gpus_per_node() const { return gpus_per_node_; }  // of equal nodes
  std::size_t node_of(std::int64_t rank) const {
    return static_cast<std::size_t>(is_equal() ? rank / gpus_per_node_
                                               : node_of_[static_cast<std::size_t>(rank)]);
  }
  const std::vector<NodeShape>& nodes() const { return nodes_; }  // empty if equal

 private:
  std::int64_t gpus_per_node_ = 0;
  std::vector<NodeShape> nodes_;
  std::vector<std::int32_t> node_of_;
};

// Placement of the groups of one kind on nodes.
struct GroupPlacement {
  std::int64_t ranks = 1;           // per group
  std::int64_t nodes = 1;           // of the group on most nodes
  std::int64_t ranks_per_node = 1;  // ranks / nodes, rounded up
  // Groups with members on the first and on other nodes: they share the first node's NICs.
  std::int64_t groups_per_node = 1;
  // If nodes differ, the node that limits a group: the one with the least NIC bandwidth for the
  // group, or in an all-to-all for each byte that the group sends. ranks_per_node and
  // groups_per_node are those of this node. Zeros: a node of the cluster.
  NodeShape node = {};
  friend bool operator==(const GroupPlacement&, const GroupPlacement&) = default;
};
GroupPlacement place_group(const Plan& plan, GroupKind group, const NodeMap& map);
// Places a group of these global ranks, and assumes that the other ranks form like groups.
GroupPlacement place_ranks(const std::vector<std::int64_t>& ranks, std::int64_t gpus_per_node);
// Places all ranks of one pipeline stage as one group.
GroupPlacement place_replicas(const Plan& plan, const NodeMap& map);

// P2P transfers of activations to the next stage and, with an interleaved schedule, from the last
// stage to the first one's next chunk. Gradients take the same routes back.
struct TransferPlacement {
  double share_leaving_node = 0;      // share of the step's transfers that cross nodes
  std::int64_t senders_per_node = 0;  // most ranks on one node that send to another node
  NodeShape node = {};                // as in GroupPlacement, the node with most senders per NIC
  friend bool operator==(const TransferPlacement&, const TransferPlacement&) = default;
};
TransferPlacement place_transfers(const Plan& plan, const NodeMap& map);

}  // namespace tpsim

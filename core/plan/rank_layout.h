// Which rank sits where: from plan coordinates to global ranks, and how groups fall on nodes.
#pragma once

#include <cstdint>
#include <vector>

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

// Default order: ((pp * DP + dp) * CP + cp) * TP + tp, Megatron's tp-cp-dp-pp; with
// RankOrder::kTpPpDp: ((dp * PP + pp) * CP + cp) * TP + tp, its tp-cp-pp-dp.
std::int64_t global_rank(const Plan& plan, const RankCoordinates& at);
RankCoordinates coordinates(const Plan& plan, std::int64_t rank);

// Global ranks of the group of this kind that `rank` belongs to, in group order, which is that of
// an index:
//   tensor tp; context cp; pipeline pp; world the global rank
//   data         dp * CP + cp: by replica, then by part of the sequence
//   expert_tensor, expert, expert_data: the coordinates in ETP x EP x EDP, first innermost, of the
//                place (dp * CP + cp) * TP + tp among the stage's ranks; with ETP = TP and EP = 1
//                those of tensor, nothing and data
//   model        pp * TP + tp
//   embedding    the first and the last stage; a rank of a stage between them is alone in its group
std::vector<std::int64_t> group_members(const Plan& plan, GroupKind group, std::int64_t rank);

// The same without the others: where a rank stands in its group.
struct GroupPosition {
  std::int64_t index = 0;
  std::int64_t size = 1;
};
GroupPosition group_position(const Plan& plan, GroupKind group, std::int64_t rank);

// How the groups of one kind fall on nodes when ranks fill nodes in order.
struct GroupPlacement {
  std::int64_t ranks = 1;            // members of one group
  std::int64_t nodes = 1;            // nodes that the worst placed group touches
  std::int64_t ranks_per_node = 1;   // ranks / nodes, rounded up
  std::int64_t groups_per_node = 1;  // groups with members on the first node and others beyond it:
                                     // they share its NICs when all of them communicate at once
  friend bool operator==(const GroupPlacement&, const GroupPlacement&) = default;
};
GroupPlacement place_group(const Plan& plan, GroupKind group, std::int64_t gpus_per_node);
// The ranks of one pipeline stage together: its tensor groups in all their replicas.
GroupPlacement place_replicas(const Plan& plan, std::int64_t gpus_per_node);

// Activations on their way to the next stage, and with an interleaved schedule from the last stage
// to the first one's next chunk; gradients take the same ways back.
struct TransferPlacement {
  double share_leaving_node = 0;      // of all transfers of a step
  std::int64_t senders_per_node = 0;  // most ranks of one node that send to another node
};
TransferPlacement place_transfers(const Plan& plan, std::int64_t gpus_per_node);

}  // namespace tpsim

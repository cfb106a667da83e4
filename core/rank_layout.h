// Which rank sits where: from plan coordinates to global ranks, and how groups fall on nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan.h"
#include "core/program.h"

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
// Index in the data group: dp * CP + cp.
std::int64_t data_rank(const Plan& plan, const RankCoordinates& at);
// Index in the expert group, dp % EP: neighbouring replicas share the experts. Index in the
// expert-data group: dp / EP * CP + cp.
std::int64_t expert_rank(const Plan& plan, const RankCoordinates& at);
std::int64_t expert_data_rank(const Plan& plan, const RankCoordinates& at);
RankCoordinates coordinates(const Plan& plan, std::int64_t rank);

// Global ranks of the group of this kind that `rank` belongs to, in group order.
std::vector<std::int64_t> group_members(const Plan& plan, GroupKind group, std::int64_t rank);

// How the groups of one kind fall on nodes when ranks fill nodes in order.
struct GroupPlacement {
  std::int64_t ranks = 1;            // members of one group
  std::int64_t nodes = 1;            // nodes that one group touches
  std::int64_t ranks_per_node = 1;   // most members of one group on one node
  std::int64_t groups_per_node = 1;  // groups with members on one node and others beyond it: they
                                     // share its NICs when all of them communicate at once
  friend bool operator==(const GroupPlacement&, const GroupPlacement&) = default;
};
// The worst placed group of the kind (most nodes). For kPipeline: neighbouring stages; for kModel:
// the stages of one tensor-parallel rank.
GroupPlacement place_group(const Plan& plan, GroupKind group, std::int64_t gpus_per_node);
// Share of the transfers between neighbouring stages that leave a node: ranks `stride` apart.
double transfers_leaving_node(const Plan& plan, std::int64_t gpus_per_node);

}  // namespace tpsim

#include "core/rank_layout.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/check.h"

namespace tpsim {
namespace {

// Members of a node group and where they start, for a group of `count` ranks `stride` apart.
std::vector<std::int64_t> strided(std::int64_t first, std::int64_t stride, std::int64_t count) {
  std::vector<std::int64_t> members;
  for (std::int64_t i = 0; i < count; ++i) members.push_back(first + i * stride);
  return members;
}

std::int64_t data_stride(const Plan& plan) {
  const ParallelDegrees& d = plan.degrees;
  return plan.rank_order == RankOrder::kTpDpPp ? d.tp : d.tp * d.pp;
}

std::int64_t pipeline_stride(const Plan& plan) {
  const ParallelDegrees& d = plan.degrees;
  return plan.rank_order == RankOrder::kTpDpPp ? d.tp * d.dp : d.tp;
}

struct NodeShare {
  std::int64_t nodes = 0;
  std::int64_t most_on_one = 0;
};

NodeShare share_of(const std::vector<std::int64_t>& members, std::int64_t gpus_per_node) {
  std::map<std::int64_t, std::int64_t> per_node;
  for (const std::int64_t rank : members) ++per_node[rank / gpus_per_node];
  NodeShare share;
  share.nodes = static_cast<std::int64_t>(per_node.size());
  for (const auto& [node, count] : per_node) share.most_on_one = std::max(share.most_on_one, count);
  return share;
}

}  // namespace

std::int64_t global_rank(const Plan& plan, const RankCoordinates& at) {
  return at.tp + at.dp * data_stride(plan) + at.pp * pipeline_stride(plan);
}

RankCoordinates coordinates(const Plan& plan, std::int64_t rank) {
  const ParallelDegrees& d = plan.degrees;
  TPSIM_CHECK(rank >= 0 && rank < gpu_count(plan), "rank out of range");
  return {rank % d.tp, rank / data_stride(plan) % d.dp, rank / pipeline_stride(plan) % d.pp};
}

std::vector<std::int64_t> group_members(const Plan& plan, GroupKind group, std::int64_t rank) {
  const ParallelDegrees& d = plan.degrees;
  const RankCoordinates at = coordinates(plan, rank);
  switch (group) {
    case GroupKind::kTensor: return strided(rank - at.tp, 1, d.tp);
    case GroupKind::kData: return strided(rank - at.dp * data_stride(plan), data_stride(plan), d.dp);
    case GroupKind::kPipeline:
      return strided(rank - at.pp * pipeline_stride(plan), pipeline_stride(plan), d.pp);
    case GroupKind::kEmbedding: {
      const std::int64_t first = rank - at.pp * pipeline_stride(plan);
      if (d.pp == 1) return {first};
      return {first, first + (d.pp - 1) * pipeline_stride(plan)};
    }
    case GroupKind::kModel: {
      std::vector<std::int64_t> members;
      for (std::int64_t pp = 0; pp < d.pp; ++pp) {
        for (std::int64_t tp = 0; tp < d.tp; ++tp) {
          members.push_back(global_rank(plan, {tp, at.dp, pp}));
        }
      }
      return members;
    }
    case GroupKind::kWorld: return strided(0, 1, gpu_count(plan));
  }
  return {};
}

GroupPlacement place_group(const Plan& plan, GroupKind group, std::int64_t gpus_per_node) {
  const std::int64_t ranks = gpu_count(plan);
  GroupPlacement placement;
  placement.nodes = 0;
  std::set<std::vector<std::int64_t>> groups_on_node;
  // Groups repeat from node to node, so the ranks of the first node show every kind of placement
  // unless a node boundary cuts groups unevenly; then every rank is looked at.
  const bool even = gpus_per_node % plan.degrees.tp == 0;
  const std::int64_t looked_at = even ? std::min(ranks, gpus_per_node) : ranks;
  for (std::int64_t rank = 0; rank < looked_at; ++rank) {
    std::vector<std::int64_t> members = group_members(plan, group, rank);
    if (group == GroupKind::kPipeline && members.size() > 2) members.resize(2);
    const NodeShare share = share_of(members, gpus_per_node);
    if (share.nodes > placement.nodes) {
      placement.nodes = share.nodes;
      placement.ranks = static_cast<std::int64_t>(members.size());
      placement.ranks_per_node = share.most_on_one;
    }
    if (share.nodes > 1 && rank < gpus_per_node) groups_on_node.insert(std::move(members));
  }
  placement.groups_per_node = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(groups_on_node.size()));
  return placement;
}

}  // namespace tpsim

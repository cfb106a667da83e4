#include "core/rank_layout.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace tpsim {
namespace {

std::vector<std::int64_t> strided(std::int64_t first, std::int64_t stride, std::int64_t count) {
  std::vector<std::int64_t> members;
  for (std::int64_t i = 0; i < count; ++i) members.push_back(first + i * stride);
  return members;
}

// Tensor- and context-parallel ranks of one stage and replica: always neighbours.
std::int64_t inner_ranks(const Plan& plan) { return plan.degrees.tp * plan.degrees.cp; }

std::int64_t replica_stride(const Plan& plan) {
  const std::int64_t inner = inner_ranks(plan);
  return plan.rank_order == RankOrder::kTpDpPp ? inner : inner * plan.degrees.pp;
}

std::int64_t pipeline_stride(const Plan& plan) {
  const std::int64_t inner = inner_ranks(plan);
  return plan.rank_order == RankOrder::kTpDpPp ? inner * plan.degrees.dp : inner;
}

// A group as arithmetic: `ranks` members `stride` apart, and that `rows` times, `row_stride` apart.
// Groups interleave within blocks of their extent.
struct Strides {
  std::int64_t stride = 1;
  std::int64_t ranks = 1;
  std::int64_t row_stride = 0;
  std::int64_t rows = 1;

  // Rank distance from a group's first member to its last.
  std::int64_t span() const { return stride * (ranks - 1) + row_stride * (rows - 1); }
};

// Context-parallel ranks and replicas; one row where they lie evenly.
Strides data_strides(const Plan& plan) {
  const ParallelDegrees& d = plan.degrees;
  if (d.cp == 1) return {replica_stride(plan), d.dp};
  if (d.dp == 1 || plan.rank_order == RankOrder::kTpDpPp) return {d.tp, d.cp * d.dp};
  return {d.tp, d.cp, replica_stride(plan), d.dp};
}

// Replicas with the same experts, each `ep` after the one before.
Strides expert_data_strides(const Plan& plan) {
  const ParallelDegrees& d = plan.degrees;
  if (d.ep == 1) return data_strides(plan);
  const std::int64_t stride = replica_stride(plan) * d.ep;
  if (d.cp == 1) return {stride, d.dp / d.ep};
  if (d.dp == d.ep) return {d.tp, d.cp};
  return {d.tp, d.cp, stride, d.dp / d.ep};
}

Strides strides_of(const Plan& plan, GroupKind group) {
  const ParallelDegrees& d = plan.degrees;
  switch (group) {
    case GroupKind::kTensor: return {1, d.tp};
    case GroupKind::kContext: return {d.tp, d.cp};
    case GroupKind::kData: return data_strides(plan);
    case GroupKind::kExpert: return {replica_stride(plan), d.ep};
    case GroupKind::kExpertData: return expert_data_strides(plan);
    case GroupKind::kPipeline: return {pipeline_stride(plan), std::min<std::int64_t>(2, d.pp)};
    case GroupKind::kEmbedding:
      return {(d.pp - 1) * pipeline_stride(plan), std::min<std::int64_t>(2, d.pp)};
    case GroupKind::kModel: return {pipeline_stride(plan), d.pp};  // neighbours of one tensor rank
    case GroupKind::kWorld: return {1, gpu_count(plan)};
  }
  return {};
}

std::int64_t nodes_of(std::int64_t first, const Strides& s, std::int64_t gpus_per_node) {
  if (s.stride >= gpus_per_node) return s.ranks * s.rows;
  std::int64_t nodes = 0, last = -1;
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const std::int64_t begin = (first + row * s.row_stride) / gpus_per_node;
    const std::int64_t end =
        (first + row * s.row_stride + s.stride * (s.ranks - 1)) / gpus_per_node;
    nodes += end - begin + (begin == last ? 0 : 1);
    last = end;
  }
  return nodes;
}

// Nodes of the worst placed group. What counts is where on its node a group starts. Groups of one
// dimension lie in blocks of all its ranks, and where on a node blocks start soon repeats.
std::int64_t most_nodes(const Plan& plan, GroupKind group, std::int64_t gpus_per_node) {
  const Strides s = strides_of(plan, group);
  if (s.stride >= gpus_per_node) return s.ranks * s.rows;
  const bool in_pipeline =
      group == GroupKind::kPipeline || group == GroupKind::kEmbedding || group == GroupKind::kModel;
  const std::int64_t block = in_pipeline ? pipeline_stride(plan) * plan.degrees.pp
                                         : std::max(s.stride * s.ranks, s.row_stride * s.rows);
  const std::int64_t blocks =
      std::min(gpu_count(plan) / block, gpus_per_node / std::gcd(block, gpus_per_node));
  // Neighbouring stages start anywhere on a node; other groups start in their block's first stride.
  const std::int64_t all = block - s.span();
  const std::int64_t starts = s.rows > 1 ? all : std::min(all, gpus_per_node);
  std::int64_t most = 1;
  for (std::int64_t first = 0; first < blocks * block; first += block) {
    for (std::int64_t start = 0; start < starts; ++start) {
      // Groups of several rows interleave within the extent of one row.
      if (s.rows > 1 && start % (s.stride * s.ranks) >= s.stride) continue;
      most = std::max(most, nodes_of(first + start, s, gpus_per_node));
    }
  }
  return most;
}

// First rank of the group that `rank` belongs to.
std::int64_t first_of(const Plan& plan, GroupKind group, std::int64_t rank) {
  const RankCoordinates at = coordinates(plan, rank);
  switch (group) {
    case GroupKind::kTensor: return rank - at.tp;
    case GroupKind::kContext: return rank - at.cp * plan.degrees.tp;
    case GroupKind::kData: return rank - at.dp * replica_stride(plan) - at.cp * plan.degrees.tp;
    case GroupKind::kExpert: return rank - at.dp % plan.degrees.ep * replica_stride(plan);
    case GroupKind::kExpertData:
      return rank - at.dp / plan.degrees.ep * plan.degrees.ep * replica_stride(plan) -
             at.cp * plan.degrees.tp;
    case GroupKind::kPipeline: return rank;
    case GroupKind::kEmbedding:
    case GroupKind::kModel: return rank - at.pp * pipeline_stride(plan);
    case GroupKind::kWorld: return 0;
  }
  return 0;
}

}  // namespace

std::int64_t global_rank(const Plan& plan, const RankCoordinates& at) {
  return at.tp + at.cp * plan.degrees.tp + at.dp * replica_stride(plan) +
         at.pp * pipeline_stride(plan);
}

std::int64_t data_rank(const Plan& plan, const RankCoordinates& at) {
  return at.dp * plan.degrees.cp + at.cp;
}

std::int64_t expert_rank(const Plan& plan, const RankCoordinates& at) {
  return at.dp % plan.degrees.ep;
}

std::int64_t expert_data_rank(const Plan& plan, const RankCoordinates& at) {
  return at.dp / plan.degrees.ep * plan.degrees.cp + at.cp;
}

RankCoordinates coordinates(const Plan& plan, std::int64_t rank) {
  const ParallelDegrees& d = plan.degrees;
  TPSIM_CHECK(rank >= 0 && rank < gpu_count(plan), "rank out of range");
  return {rank % d.tp, rank / replica_stride(plan) % d.dp, rank / pipeline_stride(plan) % d.pp,
          rank / d.tp % d.cp};
}

std::vector<std::int64_t> group_members(const Plan& plan, GroupKind group, std::int64_t rank) {
  const ParallelDegrees& d = plan.degrees;
  const RankCoordinates at = coordinates(plan, rank);
  switch (group) {
    case GroupKind::kTensor: return strided(rank - at.tp, 1, d.tp);
    case GroupKind::kContext: return strided(rank - at.cp * d.tp, d.tp, d.cp);
    case GroupKind::kData: {
      std::vector<std::int64_t> members;
      for (std::int64_t i = 0; i < data_ranks(plan); ++i) {
        members.push_back(global_rank(plan, {at.tp, i / d.cp, at.pp, i % d.cp}));
      }
      return members;
    }
    case GroupKind::kExpert:
      return strided(rank - expert_rank(plan, at) * replica_stride(plan), replica_stride(plan),
                     d.ep);
    case GroupKind::kExpertData: {
      std::vector<std::int64_t> members;
      for (std::int64_t i = 0; i < expert_data_ranks(plan); ++i) {
        const std::int64_t dp = i / d.cp * d.ep + expert_rank(plan, at);
        members.push_back(global_rank(plan, {at.tp, dp, at.pp, i % d.cp}));
      }
      return members;
    }
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
          members.push_back(global_rank(plan, {tp, at.dp, pp, at.cp}));
        }
      }
      return members;
    }
    case GroupKind::kWorld: return strided(0, 1, gpu_count(plan));
  }
  return {};
}

GroupPlacement place_group(const Plan& plan, GroupKind group, std::int64_t gpus_per_node) {
  const Strides strides = strides_of(plan, group);
  GroupPlacement placement;
  placement.ranks = strides.ranks * strides.rows;
  placement.nodes = most_nodes(plan, group, gpus_per_node);
  std::int64_t crossing = 0;
  std::int64_t last_first = -1;
  for (std::int64_t rank = 0; rank < std::min(gpu_count(plan), gpus_per_node); ++rank) {
    const std::int64_t first = first_of(plan, group, rank);
    const std::int64_t nodes = nodes_of(first, strides, gpus_per_node);
    // A group of adjacent ranks is met once for each of them; count it once.
    const bool met = strides.stride == 1 && first == last_first;
    const bool starts_here = rank - first < strides.stride;
    if (nodes > 1 && !met && starts_here) ++crossing;
    last_first = first;
  }
  placement.ranks_per_node = (placement.ranks + placement.nodes - 1) / placement.nodes;
  placement.groups_per_node = std::max<std::int64_t>(1, crossing);
  return placement;
}

double transfers_leaving_node(const Plan& plan, std::int64_t gpus_per_node) {
  if (gpu_count(plan) <= gpus_per_node) return 0;
  return std::min(1.0,
                  static_cast<double>(pipeline_stride(plan)) / static_cast<double>(gpus_per_node));
}

}  // namespace tpsim

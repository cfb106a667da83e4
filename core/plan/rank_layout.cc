#include "core/plan/rank_layout.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>

#include "core/base/check.h"

namespace tpsim {
namespace {

// One coordinate of the rank order: `extent` values, `stride` ranks apart. In a group, every
// `step`-th value is a member.
struct Dimension {
  std::int64_t stride = 1;
  std::int64_t extent = 1;
  std::int64_t step = 1;

  std::int64_t coordinate(std::int64_t rank) const { return rank / stride % extent; }
  std::int64_t block() const { return stride * extent; }   // ranks until the coordinate repeats
  std::int64_t distance() const { return stride * step; }  // between members
  std::int64_t members() const { return (extent - 1) / step + 1; }
  std::int64_t span() const { return distance() * (members() - 1); }
};

struct RankDimensions {
  Dimension tp, cp, dp, pp;
};

// Tensor- and context-parallel ranks are innermost; the plan's rank order decides whether
// data-parallel replicas or stages come next.
RankDimensions dimensions_of(const Plan& plan) {
  const ParallelDegrees& d = plan.degrees;
  const std::int64_t inner = d.tp * d.cp;
  const bool stages_last = plan.rank_order == RankOrder::kTpDpPp;
  return {.tp = {1, d.tp},
          .cp = {d.tp, d.cp},
          .dp = {stages_last ? inner : inner * d.pp, d.dp},
          .pp = {stages_last ? inner * d.dp : inner, d.pp}};
}

// The groups of one kind: their members differ only in these two coordinates. The inner one varies
// first; the stride of the outer one is a multiple of the inner block.
struct GroupShape {
  Dimension inner, outer;

  std::int64_t size() const { return inner.members() * outer.members(); }
  std::int64_t span() const { return inner.span() + outer.span(); }
  std::int64_t first_of(std::int64_t rank) const {
    return rank - inner.coordinate(rank) * inner.stride - outer.coordinate(rank) * outer.stride;
  }
  bool holds(std::int64_t rank) const { return inner.coordinate(rank) % inner.step == 0; }
};

GroupShape along(const Dimension& one) { return {one, {one.block(), 1}}; }

// Returns the groups over two dimensions. Merges them into one dimension if the outer stride equals
// the inner block.
GroupShape along(const Dimension& inner, const Dimension& outer) {
  if (outer.extent == 1) return along(inner);
  if (inner.extent == 1) return along(outer);
  if (inner.block() == outer.stride) return along({inner.stride, inner.extent * outer.extent});
  return {inner, outer};
}

// Members are `extent` ranks of one stage, `stride` apart in the stage's order (dp * CP + cp) * TP
// + tp. If ranks of other stages are between the replicas, a group may need two dimensions.
// validate() ensures that they divide evenly.
GroupShape within_stage(const Plan& plan, std::int64_t stride, std::int64_t extent) {
  const Dimension dp = dimensions_of(plan).dp;
  const std::int64_t replica = plan.degrees.tp * plan.degrees.cp;
  if (dp.stride == replica || stride * extent <= replica) return along({stride, extent});
  if (stride >= replica) return along({stride / replica * dp.stride, extent});
  return along({stride, replica / stride}, {dp.stride, stride * extent / replica});
}

GroupShape shape_of(const Plan& plan, GroupKind group) {
  const auto [tp, cp, dp, pp] = dimensions_of(plan);
  const std::int64_t ep = plan.degrees.ep, etp = expert_tensor_ranks(plan);
  switch (group) {
    case GroupKind::kTensor: return along(tp);
    case GroupKind::kContext: return along(cp);
    case GroupKind::kData: return along(cp, dp);
    case GroupKind::kExpertTensor: return within_stage(plan, 1, etp);
    case GroupKind::kExpert: return within_stage(plan, etp, ep);
    case GroupKind::kExpertData: return within_stage(plan, etp * ep, expert_data_ranks(plan));
    case GroupKind::kPipeline: return along(pp);
    case GroupKind::kEmbedding:
      return along({pp.stride, pp.extent, std::max<std::int64_t>(1, pp.extent - 1)});
    case GroupKind::kModel: return along(tp, pp);
    case GroupKind::kWorld: return along({1, gpu_count(plan)});
  }
  return {};
}

// Nodes of the group whose first rank is `first`.
std::int64_t nodes_of(const GroupShape& group, std::int64_t first, std::int64_t gpus_per_node) {
  std::int64_t nodes = 0, last = -1;
  for (std::int64_t row = 0; row < group.outer.members(); ++row) {
    const std::int64_t rank = first + row * group.outer.distance();
    const std::int64_t begin = rank / gpus_per_node;
    const std::int64_t end = (rank + group.inner.span()) / gpus_per_node;
    nodes += end - begin + (begin == last ? 0 : 1);
    last = end;
  }
  return nodes;
}

// Returns the largest number of nodes that a group spans. The number depends on the position of the
// group's first rank on its node. Positions repeat along each dimension, so that testing one period
// suffices.
std::int64_t most_nodes(const Plan& plan, const GroupShape& group, std::int64_t gpus_per_node) {
  if (group.inner.distance() >= gpus_per_node) return group.size();
  const auto period = [&](std::int64_t stride, std::int64_t end) {
    return std::min(end / stride, gpus_per_node / std::gcd(stride, gpus_per_node)) * stride;
  };
  const std::int64_t row = group.inner.block(), block = group.outer.block();
  std::int64_t most = 1;
  for (std::int64_t i = 0; i < period(block, gpu_count(plan)); i += block) {
    for (std::int64_t j = 0; j < period(row, group.outer.stride); j += row) {
      for (std::int64_t k = 0; k < period(1, group.inner.stride); ++k) {
        most = std::max(most, nodes_of(group, i + j + k, gpus_per_node));
      }
    }
  }
  return most;
}

std::vector<std::int64_t> members_of(const GroupShape& shape, std::int64_t first) {
  std::vector<std::int64_t> members;
  members.reserve(static_cast<std::size_t>(shape.size()));
  for (std::int64_t row = 0; row < shape.outer.members(); ++row) {
    for (std::int64_t i = 0; i < shape.inner.members(); ++i) {
      members.push_back(first + row * shape.outer.distance() + i * shape.inner.distance());
    }
  }
  return members;
}

// Places groups on nodes that differ.
class UnequalPlacement {
 public:
  explicit UnequalPlacement(const NodeMap& map)
      : map_(map), ranks_on_(map.nodes().size()), groups_on_(map.nodes().size()) {}

  void add(const std::vector<std::int64_t>& members) {
    std::vector<std::size_t> touched;
    for (const std::int64_t rank : members) {
      const std::size_t node = map_.node_of(rank);
      if (ranks_on_[node]++ == 0) touched.push_back(node);
    }
    placed_.ranks = std::ssize(members);
    placed_.nodes = std::max<std::int64_t>(placed_.nodes, std::ssize(touched));
    for (const std::size_t node : touched) {
      if (touched.size() > 1) parts_.push_back({node, ranks_on_[node]});
      if (touched.size() > 1) ++groups_on_[node];
      ranks_on_[node] = 0;
    }
  }

  GroupPlacement limiting(bool is_all_to_all) {
    placed_.ranks_per_node = (placed_.ranks + placed_.nodes - 1) / placed_.nodes;
    std::array<double, 3> least = {std::numeric_limits<double>::infinity(), 0, 0};
    for (const Part& part : parts_) {
      const NodeShape& node = map_.nodes()[part.node];
      const std::int64_t groups = groups_on_[part.node];
      const std::array<double, 3> own = {rate(node, part.ranks, groups, is_all_to_all),
                                         -static_cast<double>(groups),
                                         -static_cast<double>(part.ranks)};
      if (own >= least) continue;
      least = own;
      placed_.ranks_per_node = part.ranks;
      placed_.groups_per_node = groups;
      placed_.node = node;
    }
    return placed_;
  }

 private:
  struct Part {  // of a group on several nodes
    std::size_t node = 0;
    std::int64_t ranks = 0;
  };

  // Returns the NICs that the group gets on the node, as CollectiveCostModel counts them. For an
  // all-to-all: per pair of ranks on this and other nodes.
  double rate(const NodeShape& node, std::int64_t ranks, std::int64_t groups,
              bool is_all_to_all) const {
    const auto nics = static_cast<double>(node.nics), own = static_cast<double>(ranks);
    const double near = std::max(1.0, nics / static_cast<double>(node.gpus)) * own;
    const double got = std::min({nics, near, nics / static_cast<double>(groups)});
    return is_all_to_all ? got / (own * static_cast<double>(placed_.ranks - ranks)) : got;
  }

  const NodeMap& map_;
  std::vector<std::int64_t> ranks_on_, groups_on_;
  std::vector<Part> parts_;
  GroupPlacement placed_;
};

TransferPlacement place_unequal_transfers(const Plan& plan, const Dimension& pp,
                                          const NodeMap& map) {
  std::int64_t sent = 0, leaving = 0;
  std::vector<std::int64_t> senders(map.nodes().size());
  for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
    const bool is_last = pp.coordinate(rank) == pp.extent - 1;
    const std::int64_t to = is_last ? rank - pp.span() : rank + pp.stride;
    const std::int64_t transfers = plan.virtual_stages - (is_last ? 1 : 0);
    sent += transfers;
    if (transfers == 0 || map.node_of(to) == map.node_of(rank)) continue;
    leaving += transfers;
    ++senders[map.node_of(rank)];
  }
  TransferPlacement placement;
  placement.share_leaving_node = static_cast<double>(leaving) / static_cast<double>(sent);
  for (std::size_t i = 0; i < senders.size(); ++i) {
    const NodeShape& node = map.nodes()[i];
    const bool is_worse = senders[i] * std::max<std::int64_t>(1, placement.node.nics) >
                          placement.senders_per_node * node.nics;
    if (!is_worse) continue;
    placement.senders_per_node = senders[i];
    placement.node = node;
  }
  return placement;
}

}  // namespace

std::int64_t global_rank(const Plan& plan, const RankCoordinates& at) {
  const auto [tp, cp, dp, pp] = dimensions_of(plan);
  return at.tp * tp.stride + at.cp * cp.stride + at.dp * dp.stride + at.pp * pp.stride;
}

RankCoordinates coordinates(const Plan& plan, std::int64_t rank) {
  TPSIM_CHECK(rank >= 0 && rank < gpu_count(plan), "rank out of range");
  const auto [tp, cp, dp, pp] = dimensions_of(plan);
  return {.tp = tp.coordinate(rank),
          .dp = dp.coordinate(rank),
          .pp = pp.coordinate(rank),
          .cp = cp.coordinate(rank)};
}

std::vector<std::int64_t> group_members(const Plan& plan, GroupKind group, std::int64_t rank) {
  const GroupShape shape = shape_of(plan, group);
  if (!shape.holds(rank)) return {rank};
  return members_of(shape, shape.first_of(rank));
}

GroupPosition group_position(const Plan& plan, GroupKind group, std::int64_t rank) {
  const GroupShape shape = shape_of(plan, group);
  if (!shape.holds(rank)) return {};
  return {shape.outer.coordinate(rank) * shape.inner.members() +
              shape.inner.coordinate(rank) / shape.inner.step,
          shape.size()};
}

std::int64_t group_size(const Plan& plan, GroupKind group) {
  const ParallelDegrees& d = plan.degrees;
  switch (group) {
    case GroupKind::kTensor: return d.tp;
    case GroupKind::kContext: return d.cp;
    case GroupKind::kData: return data_ranks(plan);
    case GroupKind::kExpertTensor: return expert_tensor_ranks(plan);
    case GroupKind::kExpert: return d.ep;
    case GroupKind::kExpertData: return expert_data_ranks(plan);
    case GroupKind::kPipeline: return d.pp;
    case GroupKind::kEmbedding: return std::min<std::int64_t>(2, d.pp);
    case GroupKind::kModel: return d.tp * d.pp;
    case GroupKind::kWorld: return gpu_count(plan);
  }
  return 1;
}

GroupPlacement place_group(const Plan& plan, GroupKind group, const NodeMap& map) {
  const GroupShape shape = shape_of(plan, group);
  if (!map.is_equal()) {
    UnequalPlacement all(map);
    for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
      const bool is_first = shape.holds(rank) && shape.first_of(rank) == rank;
      if (is_first) all.add(members_of(shape, rank));
    }
    return all.limiting(group == GroupKind::kExpert);
  }
  const std::int64_t gpus_per_node = map.gpus_per_node();
  GroupPlacement placement;
  placement.ranks = shape.size();
  placement.nodes = most_nodes(plan, shape, gpus_per_node);
  placement.ranks_per_node = (placement.ranks + placement.nodes - 1) / placement.nodes;
  std::int64_t crossing = 0;
  for (std::int64_t rank = 0; rank < std::min(gpu_count(plan), gpus_per_node); ++rank) {
    const bool is_first = shape.first_of(rank) == rank;
    if (is_first && rank + shape.span() >= gpus_per_node) ++crossing;
  }
  placement.groups_per_node = std::max<std::int64_t>(1, crossing);
  return placement;
}

GroupPlacement place_ranks(const std::vector<std::int64_t>& ranks, std::int64_t gpus_per_node) {
  std::set<std::int64_t> nodes;
  for (const std::int64_t rank : ranks) nodes.insert(rank / gpus_per_node);
  GroupPlacement placement;
  placement.ranks = std::max<std::int64_t>(1, std::ssize(ranks));
  placement.nodes = std::max<std::int64_t>(1, std::ssize(nodes));
  placement.ranks_per_node = (placement.ranks + placement.nodes - 1) / placement.nodes;
  if (placement.nodes > 1) {
    placement.groups_per_node = std::max<std::int64_t>(1, gpus_per_node / placement.ranks_per_node);
  }
  return placement;
}

GroupPlacement place_replicas(const Plan& plan, const NodeMap& map) {
  if (!map.is_equal()) {
    UnequalPlacement all(map);
    std::vector<std::vector<std::int64_t>> stages(static_cast<std::size_t>(plan.degrees.pp));
    for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
      stages[static_cast<std::size_t>(coordinates(plan, rank).pp)].push_back(rank);
    }
    for (const std::vector<std::int64_t>& stage : stages) all.add(stage);
    return all.limiting(false);
  }
  const std::int64_t gpus_per_node = map.gpus_per_node();
  const std::int64_t gpus = gpu_count(plan);
  const std::int64_t nodes = (gpus + gpus_per_node - 1) / gpus_per_node;
  const bool side_by_side = plan.rank_order == RankOrder::kTpDpPp;
  GroupPlacement placement;
  placement.ranks = gpus / plan.degrees.pp;
  const std::int64_t filled = (placement.ranks + gpus_per_node - 1) / gpus_per_node;
  placement.nodes = side_by_side ? filled : std::min(nodes, placement.ranks);
  placement.ranks_per_node = (placement.ranks + placement.nodes - 1) / placement.nodes;
  const std::int64_t stages_of_node =
      std::max<std::int64_t>(1, std::min(gpus, gpus_per_node) / placement.ranks_per_node);
  placement.groups_per_node = placement.nodes > 1 ? stages_of_node : 1;
  return placement;
}

TransferPlacement place_transfers(const Plan& plan, const NodeMap& map) {
  const Dimension pp = dimensions_of(plan).pp;
  if (pp.extent == 1) return {};
  if (!map.is_equal()) return place_unequal_transfers(plan, pp, map);
  const std::int64_t gpus_per_node = map.gpus_per_node();
  if (pp.stride >= gpus_per_node) return {1.0, gpus_per_node};
  // After this many ranks, the placement of pipelines on nodes repeats.
  const std::int64_t period = std::lcm(pp.block(), gpus_per_node);
  const std::int64_t ranks = gpu_count(plan) % period == 0 ? period : gpu_count(plan);
  std::int64_t sent = 0, leaving = 0, senders = 0;
  TransferPlacement placement;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    if (rank % gpus_per_node == 0) senders = 0;
    const bool is_last = pp.coordinate(rank) == pp.extent - 1;
    const std::int64_t to = is_last ? rank - pp.span() : rank + pp.stride;
    const std::int64_t transfers = is_last ? plan.virtual_stages - 1 : plan.virtual_stages;
    sent += transfers;
    if (transfers == 0 || to / gpus_per_node == rank / gpus_per_node) continue;
    leaving += transfers;
    placement.senders_per_node = std::max(placement.senders_per_node, ++senders);
  }
  placement.share_leaving_node = static_cast<double>(leaving) / static_cast<double>(sent);
  return placement;
}

}  // namespace tpsim

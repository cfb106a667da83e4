#include "plans/questions/arrange.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <utility>

#include "core/plan/rank_layout.h"
#include "sim/layers/layer_pricer.h"
#include "sim/step/simulate.h"

namespace tpsim {
namespace {

using NodeOf = std::vector<std::int32_t>;

// All that a prediction reads of an arrangement.
struct Placements {
  std::array<GroupPlacement, kGroupKindCount> groups;
  GroupPlacement replicas;
  TransferPlacement transfers;
  friend bool operator==(const Placements&, const Placements&) = default;
};

struct Rating {
  Seconds step;
  std::int64_t crossings = 0;  // nodes of all groups
  friend bool operator<(const Rating& a, const Rating& b) {
    return a.step != b.step ? a.step < b.step : a.crossings < b.crossings;
  }
};

class Arranger {
 public:
  Arranger(const Scenario& scenario, const Plan& plan)
      : scenario_(scenario), plan_(plan), ops_(PriceLists(scenario).ops) {
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
        const GroupPosition at = group_position(plan, kKinds[i], rank);
        if (at.size > 1 && at.index == 0)
          groups_[i].push_back(group_members(plan, kKinds[i], rank));
      }
    }
  }

  Result<RankNodes> run() {
    for (const NodeOf& start : starts()) {
      TPSIM_TRY(const Rating rating, rating_of(start));
      rated_.emplace_back(rating, start);
    }
    std::stable_sort(rated_.begin(), rated_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    if (rated_.size() > kImproved) rated_.resize(kImproved);
    for (auto& [rating, node_of] : rated_) TPSIM_TRY_STATUS(improve(rating, node_of));
    const auto best =
        std::min_element(rated_.begin(), rated_.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
    TPSIM_TRY_STATUS(disturb(best->first, best->second));
    return RankNodes{plan_.degrees, plan_.rank_order, std::move(best->second)};
  }

 private:
  using Groups = std::vector<std::vector<std::int64_t>>;

  const std::vector<NodeShape>& nodes() const { return scenario_.cluster.unequal_nodes; }

  // Returns packings that differ in the largest block, the order of nodes, and whether as many GPUs
  // as possible are used on each node or as few on the fullest.
  std::set<NodeOf> starts() const {
    const std::int64_t ranks = gpu_count(plan_);
    std::set<NodeOf> found;
    std::vector<std::int64_t> all, leveled;
    for (const NodeShape& node : nodes()) all.push_back(node.gpus);
    std::int64_t level = 0;
    const auto below = [&](std::int64_t most) {
      std::int64_t gpus = 0;
      for (const std::int64_t own : all) gpus += std::min(own, most);
      return gpus;
    };
    while (below(level) < ranks) ++level;
    for (const std::int64_t own : all) leveled.push_back(std::min(own, level));
    for (const std::vector<std::int64_t>& free_gpus : {all, leveled}) {
      for (const std::vector<std::size_t>& order : orders()) {
        std::vector<std::int64_t> blocks = block_sizes(plan_);
        for (; !blocks.empty(); blocks.pop_back()) {
          found.insert(packed(ranks, blocks, free_gpus, order));
        }
        for (const Groups& groups : groups_) {
          found.insert(packed_groups(groups, free_gpus, order));
        }
      }
    }
    return found;
  }

  // Keeps groups of one kind whole, also if their ranks are not consecutive.
  NodeOf packed_groups(const Groups& groups, const std::vector<std::int64_t>& free_gpus,
                       const std::vector<std::size_t>& order) const {
    const std::int64_t count = gpu_count(plan_);
    std::vector<bool> is_member(static_cast<std::size_t>(count));
    std::vector<std::int64_t> ranks;  // group by group, then the ranks of no group
    for (const std::vector<std::int64_t>& members : groups) {
      ranks.insert(ranks.end(), members.begin(), members.end());
      for (const std::int64_t rank : members) is_member[static_cast<std::size_t>(rank)] = true;
    }
    for (std::int64_t rank = 0; rank < count; ++rank) {
      if (!is_member[static_cast<std::size_t>(rank)]) ranks.push_back(rank);
    }
    std::vector<std::int64_t> blocks = {1};
    const std::int64_t size = groups.empty() ? 1 : std::ssize(groups.front());
    if (size > 1 && count % size == 0) blocks.push_back(size);
    const NodeOf by_place = packed(count, blocks, free_gpus, order);
    NodeOf node_of(by_place.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      node_of[static_cast<std::size_t>(ranks[i])] = by_place[i];
    }
    return node_of;
  }

  std::vector<std::vector<std::size_t>> orders() const {
    using Shape = const NodeShape&;
    const auto by_nics = [](Shape a, Shape b) { return a.nics * b.gpus > b.nics * a.gpus; };
    return {node_order(nodes(), [](Shape a, Shape b) { return a.gpus > b.gpus; }),
            node_order(nodes(), [](Shape a, Shape b) { return a.gpus < b.gpus; }),
            node_order(nodes(), by_nics), node_order(nodes(), [](Shape, Shape) { return false; })};
  }

  Result<Rating> rating_of(const NodeOf& node_of) {
    const NodeMap map(nodes(), node_of);
    Placements placed;
    for (const GroupKind kind : kKinds) {
      placed.groups[static_cast<std::size_t>(kind)] = place_group(plan_, kind, map);
    }
    placed.replicas = place_replicas(plan_, map);
    placed.transfers = place_transfers(plan_, map);
    Rating rating{Seconds(), crossings(node_of)};
    for (const auto& [known, step] : steps_) {
      if (known == placed) return Rating{step, rating.crossings};
    }
    Scenario scenario = scenario_;
    scenario.rank_nodes = {{plan_.degrees, plan_.rank_order, node_of}};
    TPSIM_TRY(const Prediction predicted, simulate(scenario, plan_, ops_));
    rating.step = predicted.step;
    steps_.emplace_back(placed, rating.step);
    return rating;
  }

  std::int64_t crossings(const NodeOf& node_of) const {
    std::int64_t count = 0;
    std::vector<std::int32_t> own;
    for (const Groups& groups : groups_)
      for (const std::vector<std::int64_t>& members : groups) {
        own.clear();
        for (const std::int64_t rank : members)
          own.push_back(node_of[static_cast<std::size_t>(rank)]);
        std::sort(own.begin(), own.end());
        count += std::unique(own.begin(), own.end()) - own.begin() - 1;
      }
    return count;
  }

  // Swaps blocks of all sizes, and moves blocks to free GPUs, while the rating improves.
  Status improve(Rating& rating, NodeOf& node_of) {
    bool has_changed = true;
    while (has_changed) {
      has_changed = false;
      for (const std::int64_t size : block_sizes(plan_)) {
        for (std::int64_t a = 0; a < gpu_count(plan_); a += size) {
          TPSIM_TRY(const bool moved, move_block(a, size, rating, node_of));
          has_changed |= moved;
          if (work_ > kMostWork) return Ok{};
          for (std::int64_t b = a + size; b < gpu_count(plan_); b += size) {
            TPSIM_TRY(const bool swapped, swap_blocks(a, b, size, rating, node_of));
            has_changed |= swapped;
          }
        }
      }
    }
    return Ok{};
  }

  // Swaps a few ranks at random and improves again, to leave a local optimum.
  Status disturb(Rating& rating, NodeOf& node_of) {
    std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same arrangement in every run
    for (int i = 0; i < kDisturbed && work_ <= kMostWork; ++i) {
      NodeOf other = node_of;
      for (int n = 0; n < 2 + i % 3; ++n) {
        std::swap(other[random() % other.size()], other[random() % other.size()]);
      }
      TPSIM_TRY(Rating own, rating_of(other));
      TPSIM_TRY_STATUS(improve(own, other));
      if (!(own < rating)) continue;
      rating = own;
      node_of = std::move(other);
    }
    return Ok{};
  }

  Result<bool> swap_blocks(std::int64_t a, std::int64_t b, std::int64_t size, Rating& rating,
                           NodeOf& node_of) {
    const auto first = node_of.begin() + a, second = node_of.begin() + b;
    if (std::equal(first, first + size, second)) return false;
    NodeOf changed = node_of;
    std::swap_ranges(changed.begin() + a, changed.begin() + a + size, changed.begin() + b);
    return take_if_better(std::move(changed), rating, node_of);
  }

  Result<bool> move_block(std::int64_t a, std::int64_t size, Rating& rating, NodeOf& node_of) {
    bool has_moved = false;
    if (gpu_count(plan_) == gpus_of(scenario_.cluster)) return has_moved;
    for (std::size_t to = 0; to < nodes().size() && work_ <= kMostWork; ++to) {
      NodeOf changed = node_of;
      const auto node = static_cast<std::int32_t>(to);
      std::fill_n(changed.begin() + a, size, node);
      work_ += gpu_count(plan_);
      const bool fits = std::count(changed.begin(), changed.end(), node) <= nodes()[to].gpus;
      if (!fits || changed == node_of) continue;
      TPSIM_TRY(const bool moved, take_if_better(std::move(changed), rating, node_of));
      has_moved |= moved;
    }
    return has_moved;
  }

  Result<bool> take_if_better(NodeOf changed, Rating& rating, NodeOf& node_of) {
    work_ += gpu_count(plan_);
    if (work_ > kMostWork) return false;
    TPSIM_TRY(const Rating other, rating_of(changed));
    if (!(other < rating)) return false;
    rating = other;
    node_of = std::move(changed);
    return true;
  }

  static constexpr std::array kKinds = {
      GroupKind::kTensor,       GroupKind::kContext,   GroupKind::kData,  GroupKind::kPipeline,
      GroupKind::kEmbedding,    GroupKind::kModel,     GroupKind::kWorld, GroupKind::kExpert,
      GroupKind::kExpertTensor, GroupKind::kExpertData};
  static constexpr int kDisturbed = 64;
  static constexpr std::size_t kImproved = 4;         // starts whose blocks are swapped
  static constexpr std::int64_t kMostWork = 400'000;  // ranks of all arrangements that are tried

  const Scenario& scenario_;
  const Plan& plan_;
  std::shared_ptr<const OpCostModel> ops_;
  std::array<Groups, kGroupKindCount> groups_;  // of several ranks, by kKinds
  std::vector<std::pair<Placements, Seconds>> steps_;
  std::vector<std::pair<Rating, NodeOf>> rated_;
  std::int64_t work_ = 0;
};

}  // namespace

Result<RankNodes> arranged(const Scenario& scenario, const Plan& plan) {
  return Arranger(scenario, plan).run();
}

std::optional<EqualNodes> on_equal_nodes(const Scenario& scenario, const Plan& plan) {
  Scenario other = scenario;
  ClusterSpec& cluster = other.cluster;
  if (cluster.unequal_nodes.empty()) return std::nullopt;
  const std::int64_t gpus = gpu_count(plan), host = host_size(cluster),
                     whole = cluster.gpus_per_node;
  std::int64_t nodes = (gpus + whole - 1) / whole;
  const auto are_whole_hosts = [&] {
    return gpus % nodes == 0 && (nodes == 1 || gpus / nodes % host == 0);
  };
  while (nodes * host < gpus && !are_whole_hosts()) ++nodes;
  if (!are_whole_hosts()) return std::nullopt;
  cluster.unequal_nodes.clear();
  other.rank_nodes.clear();
  cluster.nics_per_node = std::max<std::int64_t>(1, cluster.nics_per_node * (gpus / nodes) / whole);
  cluster.nodes = nodes;
  cluster.gpus_per_node = gpus / nodes;
  cluster.partly_used_gpus = 0;
  const Result<Prediction> predicted = simulate(other, plan);
  if (!predicted.ok()) return std::nullopt;
  return EqualNodes{nodes, cluster.gpus_per_node, predicted->step};
}

}  // namespace tpsim

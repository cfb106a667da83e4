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

using NodeOf = std::vector<std::int32_t>;  // node of each rank, then of each idle GPU

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
    for (std::size_t kind = 0; kind < kGroupKindCount; ++kind) {
      for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
        const GroupPosition at = group_position(plan, static_cast<GroupKind>(kind), rank);
        if (at.size == 1 || at.index > 0) continue;
        groups_[kind].push_back(group_members(plan, static_cast<GroupKind>(kind), rank));
      }
    }
  }

  Result<RankNodes> run() {
    std::vector<std::pair<Rating, NodeOf>> rated;
    for (const NodeOf& start : starts()) {
      TPSIM_TRY(const Rating rating, rating_of(start));
      rated.emplace_back(rating, start);
    }
    const auto is_better = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::stable_sort(rated.begin(), rated.end(), is_better);
    if (rated.size() > kImproved) rated.resize(kImproved);
    for (auto& [rating, node_of] : rated) TPSIM_TRY_STATUS(improve(rating, node_of));
    auto& [rating, node_of] = *std::min_element(rated.begin(), rated.end(), is_better);
    TPSIM_TRY_STATUS(disturb(rating, node_of));
    node_of.resize(static_cast<std::size_t>(gpu_count(plan_)));
    return RankNodes{plan_.degrees, plan_.rank_order, std::move(node_of)};
  }

 private:
  using Groups = std::vector<std::vector<std::int64_t>>;

  // Returns packings that differ in the blocks that are kept whole and in the order of nodes.
  std::set<NodeOf> starts() const {
    const std::vector<NodeShape>& nodes = scenario_.cluster.unequal_nodes;
    std::set<NodeOf> found;
    for (const bool is_largest_first : {true, false}) {
      const std::vector<std::size_t> order = by_size(nodes, is_largest_first);
      for (auto blocks = block_sizes(plan_); !blocks.empty(); blocks.pop_back()) {
        found.insert(packed(plan_, nodes, blocks, order));
      }
      for (const Groups& groups : groups_) found.insert(packed_groups(groups, order));
    }
    return found;
  }

  // Keeps groups of one kind whole, also if their ranks are not consecutive.
  NodeOf packed_groups(const Groups& groups, const std::vector<std::size_t>& order) const {
    const std::int64_t count = gpu_count(plan_);
    std::vector<std::int64_t> ranks;  // group by group, then the ranks of no group
    std::vector<bool> is_member(static_cast<std::size_t>(count));
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
    const NodeOf by_place = packed(plan_, scenario_.cluster.unequal_nodes, blocks, order);
    NodeOf node_of = by_place;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      node_of[static_cast<std::size_t>(ranks[i])] = by_place[i];
    }
    return node_of;
  }

  Result<Rating> rating_of(const NodeOf& node_of) {
    const NodeMap map(scenario_.cluster.unequal_nodes, node_of);
    Placements placed;
    for (std::size_t kind = 0; kind < kGroupKindCount; ++kind) {
      placed.groups[kind] = place_group(plan_, static_cast<GroupKind>(kind), map);
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
    for (const Groups& groups : groups_) {
      for (const std::vector<std::int64_t>& members : groups) {
        own.clear();
        for (const std::int64_t rank : members)
          own.push_back(node_of[static_cast<std::size_t>(rank)]);
        std::sort(own.begin(), own.end());
        count += std::unique(own.begin(), own.end()) - own.begin() - 1;
      }
    }
    return count;
  }

  // Swaps blocks of all sizes, also with idle GPUs, while the rating improves.
  Status improve(Rating& rating, NodeOf& node_of) {
    bool has_changed = true;
    while (has_changed) {
      has_changed = false;
      for (const std::int64_t size : block_sizes(plan_)) {
        for (std::int64_t a = 0; a < gpu_count(plan_); a += size) {
          for (std::int64_t b = a + size; b + size <= std::ssize(node_of); b += size) {
            TPSIM_TRY(const bool swapped, swap_blocks(a, b, size, rating, node_of));
            has_changed |= swapped;
            if (work_ > kMostWork) return Ok{};
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
    const auto first = node_of.begin() + a;
    if (std::equal(first, first + size, node_of.begin() + b)) return false;
    work_ += gpu_count(plan_);
    NodeOf changed = node_of;
    std::swap_ranges(changed.begin() + a, changed.begin() + a + size, changed.begin() + b);
    TPSIM_TRY(const Rating other, rating_of(changed));
    if (!(other < rating)) return false;
    rating = other;
    node_of = std::move(changed);
    return true;
  }

  static constexpr std::size_t kImproved = 4;         // starts whose blocks are swapped
  static constexpr int kDisturbed = 64;               // starts after these
  static constexpr std::int64_t kMostWork = 400'000;  // ranks of all arrangements that are tried

  const Scenario& scenario_;
  const Plan& plan_;
  std::shared_ptr<const OpCostModel> ops_;
  std::array<Groups, kGroupKindCount> groups_;  // of several ranks
  std::vector<std::pair<Placements, Seconds>> steps_;
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

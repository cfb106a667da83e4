// Laws of rank coordinates and groups, for random plans in both rank orders.
#include "core/plan/rank_layout.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "core/plan/plan_settings.h"

namespace tpsim {
namespace {

constexpr std::array kGroups = {
    GroupKind::kTensor,     GroupKind::kContext,     GroupKind::kData,  GroupKind::kPipeline,
    GroupKind::kEmbedding,  GroupKind::kModel,       GroupKind::kWorld, GroupKind::kExpert,
    GroupKind::kExpertData, GroupKind::kExpertTensor};

// All expert layouts of the plan's ranks.
std::vector<ParallelDegrees> expert_layouts(Plan plan) {
  std::vector<ParallelDegrees> layouts;
  for (std::int64_t etp = 0; etp <= stage_ranks(plan); ++etp) {
    for (std::int64_t ep = 1; ep <= stage_ranks(plan); ++ep) {
      plan.degrees.etp = etp;
      plan.degrees.ep = ep;
      if (experts_fit_ranks(plan)) layouts.push_back(plan.degrees);
    }
  }
  return layouts;
}

std::vector<Plan> random_plans() {
  std::mt19937 random(11);
  const auto pick = [&](std::vector<std::int64_t> from) { return from[random() % from.size()]; };
  std::vector<Plan> plans;
  for (int i = 0; i < 60; ++i) {
    Plan plan;
    plan.degrees = {pick({1, 2, 3, 4, 8}), pick({1, 2, 3, 5, 8}), pick({1, 2, 4, 7}),
                    pick({1, 1, 2, 3})};
    plan.rank_order = i % 2 == 0 ? RankOrder::kTpDpPp : RankOrder::kTpPpDp;
    const std::vector<ParallelDegrees> layouts = expert_layouts(plan);
    plan.degrees = layouts[random() % layouts.size()];
    plans.push_back(plan);
  }
  return plans;
}

TEST_CASE("every rank is placed once and has its coordinates") {
  for (const Plan& plan : random_plans()) {
    std::set<std::int64_t> placed;
    for (std::int64_t pp = 0; pp < plan.degrees.pp; ++pp) {
      for (std::int64_t dp = 0; dp < plan.degrees.dp; ++dp) {
        for (std::int64_t i = 0; i < plan.degrees.tp * plan.degrees.cp; ++i) {
          const RankCoordinates at{i % plan.degrees.tp, dp, pp, i / plan.degrees.tp};
          const std::int64_t rank = global_rank(plan, at);
          CHECK(placed.insert(rank).second);
          CHECK(coordinates(plan, rank) == at);
        }
      }
    }
    CHECK(static_cast<std::int64_t>(placed.size()) == gpu_count(plan));
    CHECK(*placed.begin() == 0);
    CHECK(*placed.rbegin() == gpu_count(plan) - 1);
  }
}

TEST_CASE("the rank layout of BLOOM is the published one") {
  Plan plan;
  plan.degrees = {4, 12, 8, 1};
  CHECK(global_rank(plan, {3, 5, 7}) == 7 * 32 + 5 * 4 + 3);
  plan.rank_order = RankOrder::kTpPpDp;
  CHECK(global_rank(plan, {3, 5, 7}) == 5 * 48 + 7 * 4 + 3);
}

TEST_CASE("context-parallel ranks are between tensor- and data-parallel ones, as in Megatron") {
  Plan plan;
  plan.degrees = {.tp = 4, .pp = 3, .dp = 5, .cp = 2};
  CHECK(global_rank(plan, {.tp = 3, .dp = 4, .pp = 2, .cp = 1}) == ((2 * 5 + 4) * 2 + 1) * 4 + 3);
  plan.rank_order = RankOrder::kTpPpDp;
  CHECK(global_rank(plan, {.tp = 3, .dp = 4, .pp = 2, .cp = 1}) == ((4 * 3 + 2) * 2 + 1) * 4 + 3);
}

TEST_CASE("a rank's position in a group is its index among the members") {
  for (const Plan& plan : random_plans()) {
    for (const GroupKind kind : kGroups) {
      for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
        const auto members = group_members(plan, kind, rank);
        const GroupPosition position = group_position(plan, kind, rank);
        if (position.size > 1) CHECK(group_size(plan, kind) == position.size);
        CHECK(members.at(static_cast<std::size_t>(position.index)) == rank);
        CHECK(position.size == static_cast<std::int64_t>(members.size()));
      }
    }
  }
}

TEST_CASE("groups of two coordinates count the inner one first") {
  for (const Plan& plan : random_plans()) {
    const ParallelDegrees& d = plan.degrees;
    for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
      const RankCoordinates at = coordinates(plan, rank);
      const auto index = [&](GroupKind kind) { return group_position(plan, kind, rank).index; };
      CHECK(index(GroupKind::kData) == at.dp * d.cp + at.cp);
      CHECK(index(GroupKind::kModel) == at.pp * d.tp + at.tp);
    }
  }
}

// Position among the ranks of the stage, in the order of attention's groups.
std::int64_t place_in_stage(const Plan& plan, std::int64_t rank) {
  const RankCoordinates at = coordinates(plan, rank);
  return (at.dp * plan.degrees.cp + at.cp) * plan.degrees.tp + at.tp;
}

TEST_CASE("a stage's ranks are etp x ep x edp for experts, etp innermost") {
  for (const Plan& plan : random_plans()) {
    const std::int64_t etp = expert_tensor_ranks(plan), ep = plan.degrees.ep;
    INFO(short_name(plan));
    for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
      const std::int64_t place = place_in_stage(plan, rank);
      const auto check = [&](GroupKind kind, std::int64_t stride, std::int64_t extent) {
        const auto members = group_members(plan, kind, rank);
        REQUIRE(static_cast<std::int64_t>(members.size()) == extent);
        const std::int64_t first = place - place / stride % extent * stride;
        for (std::int64_t i = 0; i < extent; ++i) {
          const std::int64_t member = members[static_cast<std::size_t>(i)];
          CHECK(coordinates(plan, member).pp == coordinates(plan, rank).pp);
          CHECK(place_in_stage(plan, member) == first + i * stride);
        }
      };
      check(GroupKind::kExpertTensor, 1, etp);
      check(GroupKind::kExpert, etp, ep);
      check(GroupKind::kExpertData, etp * ep, expert_data_ranks(plan));
    }
  }
}

TEST_CASE("with tensor parallelism whole experts reach fewer nodes") {
  // Qwen3-235B on 256 GPUs: tp 2, pp 8, experts sharded over 32 ranks.
  Plan plan;
  plan.degrees = {.tp = 2, .pp = 8, .dp = 16, .ep = 32, .etp = 1};
  CHECK(expert_data_ranks(plan) == 1);
  CHECK(place_group(plan, GroupKind::kExpert, 8).nodes == 4);
  CHECK(place_group(plan, GroupKind::kExpert, 8).ranks_per_node == 8);
  plan.degrees.etp = 0;
  plan.degrees.ep = 16;
  CHECK(place_group(plan, GroupKind::kExpert, 8).nodes == 4);
  CHECK(place_group(plan, GroupKind::kExpert, 8).ranks_per_node == 4);
}

TEST_CASE("the groups of a kind partition the ranks, and all members return the same group") {
  for (const Plan& plan : random_plans()) {
    for (const GroupKind kind : kGroups) {
      INFO(short_name(plan) << " " << name_of(kind));
      std::map<std::int64_t, int> seen;
      for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
        const std::vector<std::int64_t> members = group_members(plan, kind, rank);
        CHECK(std::count(members.begin(), members.end(), rank) == 1);
        CHECK(group_members(plan, kind, members.front()) == members);
        if (members.front() != rank) continue;
        for (const std::int64_t member : members) ++seen[member];
      }
      CHECK(static_cast<std::int64_t>(seen.size()) == gpu_count(plan));
      CHECK(std::all_of(seen.begin(), seen.end(), [](auto& rank) { return rank.second == 1; }));
    }
  }
}

TEST_CASE("group sizes multiply to the degrees") {
  for (const Plan& plan : random_plans()) {
    const ParallelDegrees& d = plan.degrees;
    const auto size = [&](GroupKind kind) {
      return group_position(plan, kind, gpu_count(plan) - 1).size;
    };
    CHECK(size(GroupKind::kTensor) == d.tp);
    CHECK(size(GroupKind::kContext) == d.cp);
    CHECK(size(GroupKind::kData) == d.dp * d.cp);
    CHECK(size(GroupKind::kExpert) == d.ep);
    CHECK(size(GroupKind::kExpertTensor) == expert_tensor_ranks(plan));
    CHECK(size(GroupKind::kExpertTensor) * d.ep * size(GroupKind::kExpertData) ==
          d.tp * d.cp * d.dp);
    CHECK(size(GroupKind::kPipeline) == d.pp);
    CHECK(size(GroupKind::kModel) == d.tp * d.pp);
    CHECK(size(GroupKind::kEmbedding) == std::min<std::int64_t>(2, d.pp));
    CHECK(size(GroupKind::kWorld) == gpu_count(plan));
  }
}

TEST_CASE("an embedding group joins the first and the last stage of one pipeline") {
  for (const Plan& plan : random_plans()) {
    const std::int64_t last = plan.degrees.pp - 1;
    for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
      const auto members = group_members(plan, GroupKind::kEmbedding, rank);
      const RankCoordinates at = coordinates(plan, rank);
      if (at.pp != 0 && at.pp != last) {
        CHECK(members == std::vector{rank});
        continue;
      }
      CHECK(coordinates(plan, members.front()) == RankCoordinates{at.tp, at.dp, 0, at.cp});
      CHECK(coordinates(plan, members.back()) == RankCoordinates{at.tp, at.dp, last, at.cp});
    }
  }
}

std::set<std::int64_t> nodes_of(const std::vector<std::int64_t>& ranks, std::int64_t per_node) {
  std::set<std::int64_t> nodes;
  for (const std::int64_t rank : ranks) nodes.insert(rank / per_node);
  return nodes;
}

TEST_CASE("placement counts the nodes of the worst group, and the groups that leave a node") {
  constexpr std::int64_t kPerNode = 8;
  for (const Plan& plan : random_plans()) {
    for (const GroupKind kind : kGroups) {
      std::size_t worst = 0;
      std::set<std::vector<std::int64_t>> leaving;
      for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
        const auto members = group_members(plan, kind, rank);
        const std::set<std::int64_t> nodes = nodes_of(members, kPerNode);
        worst = std::max(worst, nodes.size());
        if (rank < kPerNode && nodes.size() > 1) leaving.insert(members);
      }
      INFO(short_name(plan) << " " << name_of(plan.rank_order) << " " << name_of(kind));
      const GroupPlacement placement = place_group(plan, kind, kPerNode);
      CHECK(placement.ranks == group_position(plan, kind, 0).size);
      CHECK(placement.nodes == static_cast<std::int64_t>(worst));
      CHECK(placement.ranks_per_node * placement.nodes >= placement.ranks);
      CHECK(placement.groups_per_node ==
            std::max<std::int64_t>(1, static_cast<std::int64_t>(leaving.size())));
    }
  }
}

TEST_CASE("BLOOM's groups are placed on nodes as its chronicles state") {
  Plan plan;
  plan.degrees = {4, 12, 8, 1};
  const GroupPlacement tensor = place_group(plan, GroupKind::kTensor, 8);
  CHECK(tensor.nodes == 1);  // half a node
  const GroupPlacement data = place_group(plan, GroupKind::kData, 8);
  CHECK(data.nodes == 4);  // two replicas share a node
  CHECK(data.ranks_per_node == 2);
  CHECK(data.groups_per_node == 4);                               // one for each tensor rank
  CHECK(place_group(plan, GroupKind::kPipeline, 8).nodes == 12);  // one for each stage
}

// Counts transfers by sending rank: every chunk but the last sends its activations to the next.
struct CountedTransfers {
  std::int64_t all = 0, leaving = 0;
  std::map<std::int64_t, std::set<std::int64_t>> senders;  // ranks that leave a node, by node

  CountedTransfers(const Plan& plan, std::int64_t per_node) {
    const std::int64_t pp = plan.degrees.pp;
    for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
      RankCoordinates at = coordinates(plan, rank);
      for (std::int64_t chunk = at.pp; chunk + 1 < pp * plan.virtual_stages; chunk += pp) {
        RankCoordinates next = at;
        next.pp = (chunk + 1) % pp;
        ++all;
        if (global_rank(plan, next) / per_node == rank / per_node) continue;
        ++leaving;
        senders[rank / per_node].insert(rank);
      }
    }
  }
  std::int64_t most_senders() const {
    std::size_t most = 0;
    for (const auto& [node, ranks] : senders) most = std::max(most, ranks.size());
    return static_cast<std::int64_t>(most);
  }
};

void check_transfers(const Plan& plan) {
  for (const std::int64_t per_node : {1, 2, 4, 6, 8}) {
    const CountedTransfers counted(plan, per_node);
    const double share =
        counted.all == 0 ? 0
                         : static_cast<double>(counted.leaving) / static_cast<double>(counted.all);
    INFO(short_name(plan) << " " << name_of(plan.rank_order) << " on nodes of " << per_node);
    const TransferPlacement placement = place_transfers(plan, per_node);
    CHECK(placement.share_leaving_node == Approx(share).margin(1e-12));
    CHECK(placement.senders_per_node == counted.most_senders());
  }
}

TEST_CASE("transfers that leave a node equal a count over all ranks and chunks") {
  Plan plan;
  for (const std::int64_t tp : {1, 2, 3, 4, 8}) {
    for (const std::int64_t pp : {1, 2, 3, 4, 8}) {
      for (const std::int64_t dp : {1, 2, 3, 4, 8}) {
        for (const std::int64_t cp : {1, 2}) {
          for (const RankOrder order : {RankOrder::kTpDpPp, RankOrder::kTpPpDp}) {
            for (const std::int64_t chunks : {1, 2, 3}) {
              if (chunks > 1 && pp == 1) continue;
              plan.degrees = {tp, pp, dp, cp};
              plan.rank_order = order;
              plan.virtual_stages = chunks;
              check_transfers(plan);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a pipeline inside a node sends nothing to other nodes") {
  Plan plan;
  plan.degrees = {.tp = 2, .pp = 4, .dp = 8};
  plan.rank_order = RankOrder::kTpPpDp;
  plan.virtual_stages = 2;
  CHECK(place_transfers(plan, 8).share_leaving_node == 0);
  CHECK(place_transfers(plan, 8).senders_per_node == 0);
  plan.rank_order = RankOrder::kTpDpPp;
  CHECK(place_transfers(plan, 8).share_leaving_node == 1);
  CHECK(place_transfers(plan, 8).senders_per_node == 8);
}

}  // namespace
}  // namespace tpsim

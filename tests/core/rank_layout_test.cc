// Laws of where ranks sit, over random plans in both rank orders.
#include "core/rank_layout.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "core/plan_settings.h"

namespace tpsim {
namespace {

constexpr std::array kGroups = {
    GroupKind::kTensor,   GroupKind::kContext,   GroupKind::kData,
    GroupKind::kPipeline, GroupKind::kEmbedding, GroupKind::kModel,
    GroupKind::kWorld,    GroupKind::kExpert,    GroupKind::kExpertData};

std::vector<Plan> random_plans() {
  std::mt19937 random(11);
  const auto pick = [&](std::vector<std::int64_t> from) { return from[random() % from.size()]; };
  std::vector<Plan> plans;
  for (int i = 0; i < 60; ++i) {
    Plan plan;
    plan.degrees = {pick({1, 2, 3, 4, 8}), pick({1, 2, 3, 5, 8}), pick({1, 2, 4, 7}),
                    pick({1, 1, 2, 3})};
    plan.degrees.ep =
        pick(plan.degrees.dp % 2 == 0 ? std::vector<std::int64_t>{1, 2, plan.degrees.dp}
                                      : std::vector<std::int64_t>{1, plan.degrees.dp});
    plan.rank_order = i % 2 == 0 ? RankOrder::kTpDpPp : RankOrder::kTpPpDp;
    plans.push_back(plan);
  }
  return plans;
}

TEST_CASE("every rank is placed once and knows its coordinates") {
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

TEST_CASE("BLOOM's ranks lie as BLOOM's did") {
  Plan plan;
  plan.degrees = {4, 12, 8, 1};
  CHECK(global_rank(plan, {3, 5, 7}) == 7 * 32 + 5 * 4 + 3);
  plan.rank_order = RankOrder::kTpPpDp;
  CHECK(global_rank(plan, {3, 5, 7}) == 5 * 48 + 7 * 4 + 3);
}

TEST_CASE("context-parallel ranks lie between tensor- and data-parallel ones, as Megatron's do") {
  Plan plan;
  plan.degrees = {.tp = 4, .pp = 3, .dp = 5, .cp = 2};
  CHECK(global_rank(plan, {.tp = 3, .dp = 4, .pp = 2, .cp = 1}) == ((2 * 5 + 4) * 2 + 1) * 4 + 3);
  plan.rank_order = RankOrder::kTpPpDp;
  CHECK(global_rank(plan, {.tp = 3, .dp = 4, .pp = 2, .cp = 1}) == ((4 * 3 + 2) * 2 + 1) * 4 + 3);
}

TEST_CASE("a data group lists its ranks by replica, then by part of the sequence") {
  for (const Plan& plan : random_plans()) {
    for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
      const auto members = group_members(plan, GroupKind::kData, rank);
      const auto index = static_cast<std::size_t>(data_rank(plan, coordinates(plan, rank)));
      CHECK(members.at(index) == rank);
    }
  }
}

TEST_CASE(
    "an expert group lists neighbouring replicas, an expert-data group those with the same part") {
  for (const Plan& plan : random_plans()) {
    for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
      const RankCoordinates at = coordinates(plan, rank);
      const auto experts = group_members(plan, GroupKind::kExpert, rank);
      CHECK(experts.at(static_cast<std::size_t>(expert_rank(plan, at))) == rank);
      CHECK(coordinates(plan, experts.front()).dp == at.dp / plan.degrees.ep * plan.degrees.ep);
      const auto same = group_members(plan, GroupKind::kExpertData, rank);
      CHECK(same.at(static_cast<std::size_t>(expert_data_rank(plan, at))) == rank);
      for (const std::int64_t other : same) {
        CHECK(expert_rank(plan, coordinates(plan, other)) == expert_rank(plan, at));
      }
    }
  }
}

TEST_CASE("the groups of a kind part the ranks, and all members agree on their group") {
  for (const Plan& plan : random_plans()) {
    for (const GroupKind kind : kGroups) {
      if (kind == GroupKind::kEmbedding) continue;  // holds first and last stages only
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
      return static_cast<std::int64_t>(group_members(plan, kind, gpu_count(plan) - 1).size());
    };
    CHECK(size(GroupKind::kTensor) == d.tp);
    CHECK(size(GroupKind::kContext) == d.cp);
    CHECK(size(GroupKind::kData) == d.dp * d.cp);
    CHECK(size(GroupKind::kExpert) == d.ep);
    CHECK(size(GroupKind::kExpertData) == d.dp * d.cp / d.ep);
    CHECK(size(GroupKind::kPipeline) == d.pp);
    CHECK(size(GroupKind::kModel) == d.tp * d.pp);
    CHECK(size(GroupKind::kEmbedding) == std::min<std::int64_t>(2, d.pp));
    CHECK(size(GroupKind::kWorld) == gpu_count(plan));
  }
}

TEST_CASE("an embedding group joins the first and the last stage of one pipeline") {
  for (const Plan& plan : random_plans()) {
    for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
      const auto members = group_members(plan, GroupKind::kEmbedding, rank);
      const RankCoordinates at = coordinates(plan, rank);
      CHECK(coordinates(plan, members.front()) == RankCoordinates{at.tp, at.dp, 0, at.cp});
      CHECK(coordinates(plan, members.back()) ==
            RankCoordinates{at.tp, at.dp, plan.degrees.pp - 1, at.cp});
    }
  }
}

TEST_CASE("placement counts the nodes that the worst group touches") {
  for (const Plan& plan : random_plans()) {
    for (const GroupKind kind :
         {GroupKind::kTensor, GroupKind::kContext, GroupKind::kData, GroupKind::kEmbedding,
          GroupKind::kWorld, GroupKind::kExpert, GroupKind::kExpertData}) {
      constexpr std::int64_t kPerNode = 8;
      std::size_t worst = 0;
      for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
        std::set<std::int64_t> nodes;
        for (const auto member : group_members(plan, kind, rank)) nodes.insert(member / kPerNode);
        worst = std::max(worst, nodes.size());
      }
      INFO(short_name(plan) << " " << name_of(plan.rank_order) << " " << name_of(kind));
      const GroupPlacement placement = place_group(plan, kind, kPerNode);
      CHECK(placement.ranks == static_cast<std::int64_t>(group_members(plan, kind, 0).size()));
      CHECK(placement.nodes == static_cast<std::int64_t>(worst));
      CHECK(placement.ranks_per_node * placement.nodes >= placement.ranks);
    }
  }
}

TEST_CASE("placement of the pipeline counts the nodes of the worst neighbours") {
  for (const Plan& plan : random_plans()) {
    constexpr std::int64_t kPerNode = 8;
    std::int64_t worst = 1;
    for (std::int64_t rank = 0; rank < gpu_count(plan); ++rank) {
      const auto stages = group_members(plan, GroupKind::kPipeline, rank);
      for (std::size_t i = 1; i < stages.size(); ++i) {
        if (stages[i - 1] / kPerNode != stages[i] / kPerNode) worst = 2;
      }
    }
    INFO(short_name(plan) << " " << name_of(plan.rank_order));
    CHECK(place_group(plan, GroupKind::kPipeline, kPerNode).nodes == worst);
  }
}

TEST_CASE("BLOOM's groups fall on nodes as its chronicles say") {
  Plan plan;
  plan.degrees = {4, 12, 8, 1};
  const GroupPlacement tensor = place_group(plan, GroupKind::kTensor, 8);
  CHECK(tensor.nodes == 1);  // half a node
  const GroupPlacement data = place_group(plan, GroupKind::kData, 8);
  CHECK(data.nodes == 4);  // two replicas share a node
  CHECK(data.ranks_per_node == 2);
  CHECK(data.groups_per_node == 4);  // one for each tensor rank
  CHECK(place_group(plan, GroupKind::kPipeline, 8).nodes == 2);
}

TEST_CASE("the share of transfers that leave a node is that of a count") {
  Plan plan;
  for (const auto& [tp, pp, dp, counted] :
       {std::tuple{1, 72, 4, 35.0 / 71}, {2, 36, 4, 1.0}, {4, 12, 8, 1.0}, {1, 16, 1, 1.0 / 15}}) {
    plan.degrees = {tp, pp, dp, 1};
    CAPTURE(tp, pp, dp);
    CHECK(transfers_leaving_node(plan, 8) == Approx(counted).margin(0.07));
  }
  plan.degrees = {2, 4, 1, 1};
  CHECK(transfers_leaving_node(plan, 8) == 0);
}

}  // namespace
}  // namespace tpsim

// No assignment of ranks to the GPUs of an uneven allocation is predicted faster than the chosen
// one.
#include "plans/questions/arrange.h"

#include <catch2/catch.hpp>
#include <random>

#include "core/machine/allocation.h"
#include "core/plan/rank_layout.h"
#include "core/scenario/node_map.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

// The step of every assignment of ranks to nodes; equal placements are predicted once.
class EveryAssignment {
 public:
  EveryAssignment(const Scenario& scenario, const Plan& plan) : scenario_(scenario), plan_(plan) {
    for (const NodeShape& node : scenario.cluster.unequal_nodes) free_.push_back(node.gpus);
    assign();
  }
  Seconds least() const { return least_; }
  std::int64_t count() const { return count_; }

 private:
  void assign() {
    if (std::ssize(node_of_) == gpu_count(plan_)) return rate();
    for (std::size_t node = 0; node < free_.size(); ++node) {
      if (free_[node] == 0) continue;
      --free_[node];
      node_of_.push_back(static_cast<std::int32_t>(node));
      assign();
      node_of_.pop_back();
      ++free_[node];
    }
  }

  void rate() {
    ++count_;
    const NodeMap map(scenario_.cluster.unequal_nodes, node_of_);
    std::vector<GroupPlacement> groups = {place_replicas(plan_, map)};
    for (std::size_t kind = 0; kind < kGroupKindCount; ++kind) {
      groups.push_back(place_group(plan_, static_cast<GroupKind>(kind), map));
    }
    const std::pair key(std::move(groups), place_transfers(plan_, map));
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) return;
    known_.push_back(key);
    scenario_.rank_nodes = {{plan_.degrees, plan_.rank_order, node_of_}};
    const Result<Prediction> predicted = simulate(scenario_, plan_);
    if (!predicted.ok()) FAIL(to_string(predicted.error()));
    REQUIRE(predicted.ok());
    if (count_ == 1 || predicted->step < least_) least_ = predicted->step;
  }

  Scenario scenario_;
  Plan plan_;
  std::vector<std::int64_t> free_;
  std::vector<std::int32_t> node_of_;
  std::vector<std::pair<std::vector<GroupPlacement>, TransferPlacement>> known_;
  Seconds least_;
  std::int64_t count_ = 0;
};

struct DrawnAllocation {
  Scenario scenario;
  Plan plan;
};

DrawnAllocation drawn_allocation(std::mt19937& random) {
  const auto pick = [&](const auto& values) { return values[random() % values.size()]; };
  const bool has_experts = random() % 3 == 0;
  DrawnAllocation d{test::small_scenario(has_experts         ? test::small_mixture()
                                         : random() % 2 == 0 ? test::small_bloom()
                                                             : test::small_llama()),
                    {}};
  ClusterSpec& cluster = d.scenario.cluster;
  cluster.gpus_per_node = 8;
  cluster.nics_per_node = pick(std::vector<std::int64_t>{2, 8});
  cluster.intra_node.bandwidth = BytesPerSecond(1e9 * pick(std::vector<double>{20, 100, 400}));
  cluster.inter_node.bandwidth = BytesPerSecond(1e9 * pick(std::vector<double>{1, 12, 50}));
  // Uneven nodes, two racks, and NICs that differ; the last ones have spare GPUs.
  cluster.unequal_nodes = pick(std::vector<std::vector<NodeShape>>{{{5, 5}, {3, 3}},
                                                                   {{6, 6}, {2, 2}},
                                                                   {{4, 4}, {3, 3}, {1, 1}},
                                                                   {{4, 1}, {4, 4}},
                                                                   {{3, 3}, {3, 1}, {2, 4}},
                                                                   {{4, 4}, {2, 2}, {2, 1}},
                                                                   {{7, 7}, {3, 3}},
                                                                   {{4, 8}, {3, 2}, {3, 3}}});
  std::vector<ParallelDegrees> layouts = {{.tp = 2, .dp = 4},
                                          {.tp = 2, .pp = 2, .dp = 2},
                                          {.pp = 2, .dp = 4},
                                          {.pp = 4, .dp = 2},
                                          {.tp = 4, .dp = 2},
                                          {.dp = 8},
                                          {.tp = 2, .dp = 2, .cp = 2},
                                          {.tp = 4, .pp = 2},
                                          {.tp = 2, .dp = 3},
                                          {.tp = 1, .pp = 3, .dp = 2},
                                          {.tp = 1, .pp = 2, .dp = 2, .cp = 2}};
  if (has_experts) {
    layouts = {{.dp = 8, .ep = 4},
               {.dp = 8, .ep = 2},
               {.tp = 2, .dp = 4, .ep = 4},
               {.pp = 2, .dp = 4, .ep = 2}};
  }
  const ParallelDegrees degrees = pick(layouts);
  d.plan = test::plan_of(d.scenario.model, degrees, 4);
  d.plan.sequence_parallel = has_experts && degrees.tp > 1;
  d.plan.zero = static_cast<int>(pick(std::vector<std::int64_t>{0, 1, 3}));
  if (degrees.pp > 1 && d.plan.zero > 1) d.plan.zero = 1;
  if (random() % 2 == 0) d.plan.rank_order = RankOrder::kTpPpDp;
  return d;
}

}  // namespace

TEST_CASE("no assignment of ranks to unequal nodes is faster than the chosen one") {
  std::mt19937 random(72);
  for (int i = 0; i < 60; ++i) {
    DrawnAllocation d = drawn_allocation(random);
    INFO(i << ": " << short_name(d.plan) << ", " << name_of(d.plan.rank_order) << ", nodes of "
           << d.scenario.cluster.unequal_nodes.front().gpus << ", "
           << d.scenario.cluster.unequal_nodes.size() << " nodes");
    const EveryAssignment every(d.scenario, d.plan);
    const Result<RankNodes> chosen = arranged(d.scenario, d.plan);
    REQUIRE(chosen.ok());
    d.scenario.rank_nodes = {*chosen};
    const Result<Prediction> predicted = simulate(d.scenario, d.plan);
    REQUIRE(predicted.ok());
    CHECK(predicted->step.value() <= every.least().value() * (1 + 1e-12));
  }
}

TEST_CASE("an allocation of equal nodes is predicted as the cluster is") {
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) {
    DrawnAllocation d = drawn_allocation(random);
    ClusterSpec& cluster = d.scenario.cluster;
    cluster.unequal_nodes.clear();
    cluster.gpus_per_node = i % 2 == 0 ? 4 : 8;
    cluster.nodes = 8;
    const Result<Prediction> before = simulate(d.scenario, d.plan);
    if (!before.ok()) FAIL(to_string(before.error()));
    const auto allocation = parse_allocation("n[1-3] n=", "nodes.txt");
    CHECK_FALSE(allocation.ok());
    const auto given = parse_allocation("node[1-5]\n", "nodes.txt");
    REQUIRE(given.ok());
    const auto nodes = nodes_of(*given, cluster);
    REQUIRE(nodes.ok());
    cluster = with_nodes(cluster, *given, *nodes);
    CHECK(cluster.nodes == 5);
    const Result<Prediction> after = simulate(d.scenario, d.plan);
    REQUIRE(before.ok());
    REQUIRE(after.ok());
    CHECK(after->step == before->step);
    CHECK(after->peak == before->peak);
  }
}

TEST_CASE("nodes listed one by one place groups as equal nodes do, if blocks fill them") {
  std::mt19937 random(8);
  const std::vector<std::int64_t> powers = {1, 2, 4, 8};
  const auto pick = [&] { return powers[random() % powers.size()]; };
  for (int i = 0; i < 200; ++i) {
    Plan plan;
    plan.degrees = {.tp = pick(), .pp = pick(), .dp = pick(), .cp = pick()};
    if (i % 2 == 0) plan.rank_order = RankOrder::kTpPpDp;
    const std::int64_t node = 2 * pick(), ranks = gpu_count(plan);
    std::vector<std::int32_t> node_of;
    for (std::int64_t r = 0; r < ranks; ++r) node_of.push_back(static_cast<std::int32_t>(r / node));
    const std::vector<NodeShape> shapes(static_cast<std::size_t>((ranks + node - 1) / node),
                                        {node, node});
    const NodeMap listed(shapes, node_of);
    INFO(short_name(plan) << " on nodes of " << node);
    for (std::size_t kind = 0; kind < kGroupKindCount; ++kind) {
      const auto group = static_cast<GroupKind>(kind);
      GroupPlacement own = place_group(plan, group, listed);
      own.node = {};
      CHECK(own == place_group(plan, group, node));
    }
    TransferPlacement own = place_transfers(plan, listed);
    CHECK(own.share_leaving_node == place_transfers(plan, node).share_leaving_node);
  }
}

TEST_CASE("equal nodes are the fewest of whole hosts") {
  Scenario scenario = test::small_scenario(test::small_llama());
  ClusterSpec& cluster = scenario.cluster;
  cluster.gpus_per_node = 8;
  cluster.gpus_per_host = 2;
  cluster.nics_per_node = 8;
  cluster.unequal_nodes = {{6, 6}, {4, 4}, {2, 2}};
  const Plan plan = test::plan_of(scenario.model, {.tp = 2, .dp = 6}, 1);
  const auto better = on_equal_nodes(scenario, plan);
  REQUIRE(better);
  CHECK(better->nodes == 2);
  CHECK(better->gpus_per_node == 6);
  cluster.unequal_nodes.clear();
  CHECK_FALSE(on_equal_nodes(scenario, plan));
}

}  // namespace tpsim

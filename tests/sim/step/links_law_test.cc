// Halving a link's bandwidth slows the terms that use the link, at most by a factor of two, and no
// others.
#include <catch2/catch.hpp>
#include <optional>
#include <random>
#include <set>

#include "core/plan/rank_layout.h"
#include "costs/nccl_model.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

struct Drawn {
  Scenario scenario;
  Plan plan;
};

Drawn drawn(std::mt19937& random) {
  const auto pick = [&](std::vector<std::int64_t> values) {
    return values[random() % values.size()];
  };
  Drawn d{test::small_scenario(random() % 2 == 0 ? test::small_bloom() : test::small_llama()), {}};
  ClusterSpec& cluster = d.scenario.cluster;
  cluster.gpus_per_node = pick({2, 4, 8});
  cluster.nics_per_node = pick({1, 2, 4});
  cluster.intra_node.bandwidth = BytesPerSecond(1e9 * static_cast<double>(pick({5, 50, 300})));
  cluster.inter_node.bandwidth = BytesPerSecond(1e9 * static_cast<double>(pick({1, 12, 50})));
  d.scenario.stack.parts.p2p_calls = random() % 2 == 0 ? P2pCalls::kSerial : P2pCalls::kPaired;
  const std::int64_t tp = pick({1, 2, 4}), pp = pick({1, 2}), dp = pick({1, 2, 4});
  d.plan = test::plan_of(d.scenario.model, {.tp = tp, .pp = pp, .dp = dp}, 4);
  d.plan.zero = static_cast<int>(pick({0, 1}));
  return d;
}

// Group of a term's collectives; none for terms without communication.
std::optional<GroupKind> group_of(StepTerm term) {
  switch (term) {
    case StepTerm::kTensorCommunication: return GroupKind::kTensor;
    case StepTerm::kGradientReduction:
    case StepTerm::kWeightGather: return GroupKind::kData;
    case StepTerm::kTransfer: return GroupKind::kPipeline;
    case StepTerm::kTiedEmbedding: return GroupKind::kEmbedding;
    default: return std::nullopt;
  }
}

// Terms that follow from others: waiting, and shares of the sum.
bool follows(StepTerm term) {
  return term == StepTerm::kBubble || term == StepTerm::kHostWait ||
         term == StepTerm::kStragglers || term == StepTerm::kUncalibratedOverhead ||
         term == StepTerm::kClipping;  // an all-reduce of one number over all ranks
}

void check_halved(const Drawn& d, bool inside) {
  const Result<Prediction> before = simulate(d.scenario, d.plan);
  Scenario halved = d.scenario;
  LinkSpec& link = inside ? halved.cluster.intra_node : halved.cluster.inter_node;
  link.bandwidth *= 0.5;
  const Result<Prediction> after = simulate(halved, d.plan);
  REQUIRE(before.ok());
  REQUIRE(after.ok());
  CHECK(after->step >= before->step);
  CHECK(after->step <= 2 * before->step);
  for (const StepTerm term : kStepTerms) {
    if (follows(term)) continue;
    const double was = time_of(*before, term).value(), is = time_of(*after, term).value();
    INFO(name_of(term) << " " << was << " to " << is << (inside ? " inside" : " between") << ", tp "
                       << d.plan.degrees.tp << " pp " << d.plan.degrees.pp << " dp "
                       << d.plan.degrees.dp << " on " << d.scenario.cluster.gpus_per_node);
    const std::optional<GroupKind> group = group_of(term);
    if (!group) {
      CHECK(is == Approx(was).epsilon(1e-9));
      continue;
    }
    const GroupPlacement placement =
        place_group(d.plan, *group, node_size(d.scenario.cluster, gpu_count(d.plan)));
    const bool is_inside = placement.nodes == 1;
    CHECK(is >= was * (1 - 1e-9));
    CHECK(is <= 2 * was * (1 + 1e-9));
    // Groups inside a node do not use the network. Groups with one rank per node do not use NVLink.
    if (is_inside && !inside) CHECK(is == Approx(was).epsilon(1e-9));
    if (placement.ranks_per_node == 1 && inside && term != StepTerm::kTransfer) {
      CHECK(is == Approx(was).epsilon(1e-9));
    }
  }
}

TEST_CASE("halving a link slows the terms that use it by at most half, and no other") {
  std::mt19937 random(20);
  for (int i = 0; i < 60; ++i) {
    const Drawn d = drawn(random);
    check_halved(d, true);
    check_halved(d, false);
  }
}

TEST_CASE("a large collective takes twice as long with half of the bandwidth of its slowest link") {
  CollectivePath path;
  path.ranks = 8;
  path.intra_bandwidth = BytesPerSecond(200e9);
  path.inter_bandwidth = BytesPerSecond(20e9);
  const Bytes large(8e9);
  for (const std::int64_t nodes : {1, 4}) {
    path.nodes = nodes;
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
      CollectivePath half = path;
      (nodes == 1 ? half.intra_bandwidth : half.inter_bandwidth) *= 0.5;
      const double ratio =
          nccl_estimate(kind, large, half).time / nccl_estimate(kind, large, path).time;
      CHECK(ratio == Approx(2).epsilon(0.02));
    }
  }
}

}  // namespace
TEST_CASE("host time and efficiency of sends between stages change only the transfer term") {
  Scenario scenario = test::small_scenario(test::small_llama());
  scenario.cluster.gpus_per_node = 2;
  const Plan plan = test::plan_of(scenario.model, {.tp = 2, .pp = 2, .dp = 1}, 8);
  const auto transfer = [&](double share, double call) {
    Scenario s = scenario;
    s.cluster.p2p_efficiency = share;
    s.stack.host.per_transfer = Seconds(call);
    const Result<Prediction> predicted = simulate(s, plan);
    REQUIRE(predicted.ok());
    const Result<Prediction> before = simulate(scenario, plan);
    for (const Term& term : predicted->breakdown) {
      if (follows(term.kind) || term.kind == StepTerm::kTransfer) continue;
      CHECK(term.time == time_of(*before, term.kind));
    }
    return time_of(*predicted, StepTerm::kTransfer).value();
  };
  const double own = transfer(1, 0);
  CHECK(transfer(1, 1e-3) >= own + 8 * 1e-3 * (1 - 1e-9));  // at least one send per micro-batch
  CHECK(transfer(0.5, 0) > own);
  CHECK(transfer(0.5, 0) <= 2 * own * (1 + 1e-9));
  CHECK(transfer(1.2, 0) < own);
  // The efficiency is capped at the full link.
  CHECK(transfer(1 / scenario.cluster.inter_node.efficiency, 0) == Approx(transfer(20, 0)));
}

}  // namespace tpsim

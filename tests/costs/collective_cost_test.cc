// Laws of the collective cost model.
#include "costs/collective_cost.h"

#include <catch2/catch.hpp>

#include "costs/nccl_model.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
                                     CollectiveKind::kSend,          CollectiveKind::kAllToAll};
const std::vector<GroupPlacement> kPlacements = {{4, 1, 4, 1}, {2, 1, 2, 1},  {8, 2, 4, 1},
                                                 {4, 4, 1, 4}, {16, 8, 2, 2}, {32, 8, 4, 1},
                                                 {2, 2, 1, 4}};

CollectiveCostModel model_of(const ClusterSpec& cluster, const Profile& profile = {}) {
  return {profile, cluster};
}

double seconds(const CollectiveCostModel& model, CollectiveKind kind, double bytes,
               const GroupPlacement& placement) {
  return model.price(kind, Bytes(bytes), placement).value();
}

Profile measured_profile() {
  Profile profile = test::constant_profile();
  for (const std::int64_t ranks : {2, 4}) {
    const double n = static_cast<double>(ranks);
    for (const double bytes : {1e3, 1e4, 1e5, 1e6, 1e7}) {
      profile.collectives.push_back({CollectiveKind::kAllReduce, ranks, Bytes(bytes),
                                     Seconds(4e-6 + 2 * (n - 1) * 1e-6 + bytes / 50e9)});
    }
  }
  return profile;
}

TEST_CASE("a group of one and an empty message cost nothing") {
  const CollectiveCostModel model = model_of(test::small_cluster());
  for (const CollectiveKind kind : kKinds) {
    CHECK(seconds(model, kind, 1e9, {1, 1, 1, 1}) == 0);
    CHECK(seconds(model, kind, 0, {8, 2, 4, 1}) == 0);
  }
  CHECK(model.price_point_to_point(Bytes(0), true, 1).value() == 0);
}

// NCCL selects a broadcast's protocol as if the pipeline were already full.
TEST_CASE("a broadcast fills its ring hop by hop, with the protocol of its size") {
  CollectivePath path;
  path.ranks = 64;
  path.nodes = 8;
  path.intra_bandwidth = BytesPerSecond(200e9);
  path.inter_bandwidth = BytesPerSecond(40e9);
  path.base_latency = Seconds(6e-6);
  path.intra_latency = Seconds(1e-6);
  path.inter_latency = Seconds(5e-6);
  const Bytes large(64e6);
  const CollectiveEstimate few = nccl_estimate(CollectiveKind::kBroadcast, large, path);
  path.ranks = 1024;
  path.nodes = 128;
  const CollectiveEstimate many = nccl_estimate(CollectiveKind::kBroadcast, large, path);
  CHECK(few.protocol == CollectiveProtocol::kSimple);
  CHECK(many.protocol == few.protocol);
  CHECK(many.traffic == few.traffic);
  const Seconds per_hop = (1 / 63.0) * (few.latency - path.base_latency);
  CHECK(many.latency / (1023.0 * per_hop) > 0.9);
  CHECK(nccl_estimate(CollectiveKind::kBroadcast, Bytes(64), path).protocol ==
        CollectiveProtocol::kLl);
}

TEST_CASE("more bytes never take less time") {
  for (const Profile& profile : {Profile{}, measured_profile()}) {
    const CollectiveCostModel model = model_of(test::small_cluster(), profile);
    for (const CollectiveKind kind : kKinds) {
      for (const GroupPlacement& placement : kPlacements) {
        double before = 0;
        for (double bytes = 1; bytes < 1e11; bytes *= 1.7) {
          const double now = seconds(model, kind, bytes, placement);
          CHECK(now >= before);
          before = now;
        }
      }
    }
  }
}

TEST_CASE("measured collectives follow the cluster's own link") {
  ClusterSpec cluster = test::small_cluster();
  Profile profile = measured_profile();
  profile.link = cluster.intra_node;
  const GroupPlacement group{4, 1, 4, 1};
  const double large = 1e7, small = 1e3;
  const auto price = [&](double bytes) {
    return seconds(model_of(cluster, profile), CollectiveKind::kAllReduce, bytes, group);
  };
  const double large_there = price(large), small_there = price(small);
  cluster.intra_node.bandwidth *= 0.01;
  CHECK(price(large) > 60 * large_there);
  CHECK(price(large) <= 100 * large_there);
  cluster.intra_node.bandwidth *= 50;
  CHECK(price(large) > 1.8 * large_there);
  cluster.intra_node.bandwidth *= 2;
  cluster.intra_node.latency *= 10;
  CHECK(price(small) > 1.5 * small_there);
  CHECK(price(large) < 1.3 * large_there);
  cluster.intra_node = profile.link;
  CHECK(price(large) == large_there);
  const CollectiveCostModel same = model_of(cluster, profile);
  CHECK(same.explain(CollectiveKind::kAllReduce, Bytes(large), group).find("scaled") ==
        std::string::npos);
}

TEST_CASE("better links are never slower") {
  const CollectiveCostModel base = model_of(test::small_cluster());
  const auto change = [](auto&& edit) {
    ClusterSpec cluster = test::small_cluster();
    edit(cluster);
    return model_of(cluster);
  };
  const CollectiveCostModel better[] = {
      change([](ClusterSpec& c) { c.inter_node.bandwidth *= 2; }),
      change([](ClusterSpec& c) { c.intra_node.bandwidth *= 2; }),
      change([](ClusterSpec& c) { c.nics_per_node *= 2; }),
      change([](ClusterSpec& c) { c.inter_node.latency *= 0.5; }),
      change([](ClusterSpec& c) { c.intra_node.latency *= 0.5; })};
  for (const CollectiveCostModel& model : better) {
    for (const CollectiveKind kind : kKinds) {
      for (const GroupPlacement& placement : kPlacements) {
        for (double bytes = 100; bytes < 1e10; bytes *= 30) {
          CHECK(seconds(model, kind, bytes, placement) <= seconds(base, kind, bytes, placement));
        }
      }
    }
  }
}

TEST_CASE("no collective beats its links") {
  const ClusterSpec cluster = test::small_cluster();
  const CollectiveCostModel model = model_of(cluster);
  const double node = 2 * 10e9;  // both NICs
  for (const GroupPlacement& placement : kPlacements) {
    const double intra = 100e9;
    for (double bytes = 1; bytes < 1e11; bytes *= 10) {
      const double n = static_cast<double>(placement.ranks);
      const double reduce = seconds(model, CollectiveKind::kAllReduce, bytes, placement);
      const double gather = seconds(model, CollectiveKind::kAllGather, bytes, placement);
      CHECK(gather >= (n - 1) / n * bytes / intra);
      CHECK(reduce >= 2 * (n - 1) / n * bytes / intra);
      if (placement.nodes == 1) continue;
      const double nodes = static_cast<double>(placement.nodes);
      CHECK(gather >=
            (nodes - 1) / nodes * bytes * static_cast<double>(placement.groups_per_node) / node);
      CHECK(reduce >= bytes * static_cast<double>(placement.groups_per_node) / node);
    }
  }
}

TEST_CASE("large all-reduces across nodes run at the group's share of the NICs") {
  const CollectiveCostModel model = model_of(test::small_cluster());
  const double bytes = 1e10;
  // 4 ranks on each of 4 nodes, alone: both NICs of 10 GB/s at 80 %.
  CHECK(seconds(model, CollectiveKind::kAllReduce, bytes, {16, 4, 4, 1}) ==
        Approx(2 * 15.0 / 16 * bytes / 16e9).epsilon(0.01));
  // One rank on each of 4 nodes uses one NIC; four such groups share two.
  CHECK(seconds(model, CollectiveKind::kAllReduce, bytes, {4, 4, 1, 1}) ==
        Approx(2 * 3.0 / 4 * bytes / 8e9).epsilon(0.01));
  CHECK(seconds(model, CollectiveKind::kAllReduce, bytes, {4, 4, 1, 4}) ==
        Approx(2 * 3.0 / 4 * bytes / 4e9).epsilon(0.01));
}

TEST_CASE("an all-to-all sends what leaves a node over its NICs, the rest over its links") {
  const CollectiveCostModel model = model_of(test::small_cluster());
  const double bytes = 1e10;
  // Four ranks of a node each send a quarter to each other.
  CHECK(seconds(model, CollectiveKind::kAllToAll, bytes, {4, 1, 4, 1}) ==
        Approx(3.0 / 4 * bytes / 80e9).epsilon(0.01));
  // Each of 4 x 4 ranks sends 12/16 to other nodes: both NICs of 10 GB/s at 80 %.
  CHECK(seconds(model, CollectiveKind::kAllToAll, bytes, {16, 4, 4, 1}) ==
        Approx(4 * 12.0 / 16 * bytes / 16e9).epsilon(0.01));
  const CollectivePath path{
      16,           4, BytesPerSecond(100e9), BytesPerSecond(20e9), Seconds(6e-6), Seconds(1e-6),
      Seconds(5e-6)};
  CHECK(nccl_estimate(CollectiveKind::kAllToAll, Bytes(1e6), path).algorithm ==
        CollectiveAlgorithm::kDirect);
  // Latency grows with the peers.
  CollectivePath more = path;
  more.ranks = 64;
  more.nodes = 16;
  const Seconds added = nccl_estimate(CollectiveKind::kAllToAll, Bytes(64), more).latency -
                        nccl_estimate(CollectiveKind::kAllToAll, Bytes(64), path).latency;
  CHECK(added.value() == Approx(48 * 0.3e-6));
}

TEST_CASE("transfers share the NICs with the node's other senders") {
  const CollectiveCostModel model = model_of(test::small_cluster());
  const Bytes bytes(1e9);
  const double alone = model.price_point_to_point(bytes, true, 1).value();
  CHECK(alone == Approx(1e9 / 8e9).epsilon(0.01));
  CHECK(model.price_point_to_point(bytes, true, 4).value() == Approx(2 * alone).epsilon(0.01));
  CHECK(model.price_point_to_point(bytes, false, 4).value() == Approx(1e9 / 80e9).epsilon(0.01));
}

TEST_CASE("small all-reduces across many nodes go through the tree, large ones around the ring") {
  const CollectivePath path{
      64,           16, BytesPerSecond(100e9), BytesPerSecond(20e9), Seconds(6e-6), Seconds(1e-6),
      Seconds(5e-6)};
  CHECK(nccl_estimate(CollectiveKind::kAllReduce, Bytes(1e4), path).algorithm ==
        CollectiveAlgorithm::kTree);
  CHECK(nccl_estimate(CollectiveKind::kAllReduce, Bytes(1e10), path).algorithm ==
        CollectiveAlgorithm::kRing);
  CHECK(nccl_estimate(CollectiveKind::kAllReduce, Bytes(1e4), path).protocol ==
        CollectiveProtocol::kLl);
  CHECK(nccl_estimate(CollectiveKind::kAllReduce, Bytes(1e10), path).protocol ==
        CollectiveProtocol::kSimple);
}

TEST_CASE(
    "large all-reduces of a thousand ranks go through trees that reach less than is granted") {
  // One gigabyte over nodes of eight GPUs with 40 GB/s. Long rings cost more than the tuner expects
  // of trees.
  const auto at = [](std::int64_t nodes, double bytes) {
    return nccl_estimate(CollectiveKind::kAllReduce, Bytes(bytes),
                         {8 * nodes, nodes, BytesPerSecond(230e9), BytesPerSecond(40e9),
                          Seconds(6e-6), Seconds(1e-6), Seconds(5e-6)});
  };
  CHECK(at(32, 1e9).algorithm == CollectiveAlgorithm::kRing);
  const CollectiveEstimate many = at(128, 1e9);
  CHECK(many.algorithm == CollectiveAlgorithm::kTree);
  CHECK(many.traffic.value() == Approx(2 * 1e9 / (0.9 * 0.92 * 40e9)));
  CHECK(many.time / at(32, 1e9).time > 1.1);
  // Sizes within the tuner's correction table use the faster algorithm.
  CHECK(at(32, 2e8).time <= at(32, 3e8).time);
  CHECK(at(128, 2e8).time <= at(128, 3e8).time);
}

TEST_CASE("measured collectives of one node cost what was measured, and between sizes in between") {
  const Profile profile = measured_profile();
  const CollectiveCostModel model = model_of(test::small_cluster(), profile);
  for (const CollectiveSample& sample : profile.collectives) {
    const GroupPlacement placement{sample.ranks, 1, sample.ranks, 1};
    CHECK(model.price(sample.kind, sample.bytes, placement).value() ==
          Approx(sample.median.value()));
  }
  const double between = seconds(model, CollectiveKind::kAllReduce, 3e5, {4, 1, 4, 1});
  CHECK(between > seconds(model, CollectiveKind::kAllReduce, 1e5, {4, 1, 4, 1}));
  CHECK(between < seconds(model, CollectiveKind::kAllReduce, 1e6, {4, 1, 4, 1}));
  const double three = seconds(model, CollectiveKind::kAllReduce, 1e6, {3, 1, 3, 1});
  CHECK(three > seconds(model, CollectiveKind::kAllReduce, 1e6, {2, 1, 2, 1}));
  CHECK(three < seconds(model, CollectiveKind::kAllReduce, 1e6, {4, 1, 4, 1}));
}

TEST_CASE("a small message measured slower than a larger one sets the floor") {
  Profile profile = measured_profile();
  profile.collectives[1].median = Seconds(50e-6);
  const CollectiveCostModel model = model_of(test::small_cluster(), profile);
  CHECK(seconds(model, CollectiveKind::kAllReduce, 1e5, {2, 1, 2, 1}) == Approx(50e-6));
}

TEST_CASE("an explanation names the algorithm, the shares and the source") {
  const CollectiveCostModel model = model_of(test::small_cluster(), measured_profile());
  CHECK_THAT(model.explain(CollectiveKind::kAllReduce, Bytes(1e9), {16, 4, 4, 2}),
             Catch::Contains("ring") && Catch::Contains("2 NICs") && Catch::Contains("tests"));
  CHECK_THAT(model.explain(CollectiveKind::kAllReduce, Bytes(1e6), {4, 1, 4, 1}),
             Catch::Contains("measured") && Catch::Contains("constants"));
  CHECK_THAT(model.explain_point_to_point(Bytes(1e6), true, 4), Catch::Contains("4 senders"));
}

TEST_CASE("rings of several groups with several ranks on a node lose bandwidth to each other") {
  ClusterSpec cluster = test::small_cluster();
  const GroupPlacement alone{16, 4, 4, 1}, crowded{16, 4, 4, 4};
  const double bytes = 1e9;
  const auto time = [&](const GroupPlacement& placement) {
    return seconds(model_of(cluster), CollectiveKind::kAllReduce, bytes, placement);
  };
  const double free_alone = time(alone), free_crowded = time(crowded);
  cluster.nic_collision_efficiency = 0.5;
  CHECK(time(alone) == Approx(free_alone).epsilon(0.01));
  CHECK(time(crowded) == Approx(4 * free_crowded).epsilon(0.01));
}

}  // namespace
}  // namespace tpsim

#include "costs/nccl_model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tpsim {
namespace {

// Latencies of a protocol minus those of LL, and the share of the bandwidth that carries data.
// NCCL's tuner has these latencies for LL / LL128 / Simple: 0.6 / 1.9 / 3.4 us per NVLink hop,
// 2.7 / 4.0 / 14 us per network hop, 6.6 / 14 / 8.4 us per collective. LL sends a flag with every 4
// bytes of data, LL128 with every 120 bytes.
struct ProtocolCost {
  CollectiveProtocol protocol;
  Seconds base, intra_hop, inter_hop;
  double ring_bandwidth, tree_bandwidth;  // share of the bus bandwidth
};
constexpr std::array<ProtocolCost, 3> kProtocols = {{
    {CollectiveProtocol::kLl, Seconds(0), Seconds(0), Seconds(0), 0.5, 1 / 3.8},
    {CollectiveProtocol::kLl128, Seconds(7.4e-6), Seconds(1.3e-6), Seconds(1.3e-6), 0.92,
     0.92 * 120 / 128},
    {CollectiveProtocol::kSimple, Seconds(1.8e-6), Seconds(2.8e-6), Seconds(11.3e-6), 1.0, 0.92},
}};

double fraction_of_others(std::int64_t count) {
  return static_cast<double>(count - 1) / static_cast<double>(count);
}

CollectiveEstimate ring_estimate(CollectiveKind kind, Bytes bytes, const CollectivePath& path,
                                 const ProtocolCost& cost) {
  const std::int64_t steps = ring_steps(kind, path.ranks);
  // The ring enters each node once: it has as many hops between nodes as a ring with one rank per
  // node.
  const std::int64_t across = std::min(steps, ring_steps(kind, path.nodes));
  const Seconds latency =
      path.base_latency + cost.base +
      static_cast<double>(steps - across) * (path.intra_latency + cost.intra_hop) +
      static_cast<double>(across) * (path.inter_latency + cost.inter_hop);
  // All bytes pass every link of the ring, so that the slowest link limits the rate. With one rank
  // per node the ring uses links between nodes only.
  BytesPerSecond bus = path.nodes > 1 ? path.inter_bandwidth : path.intra_bandwidth;
  if (path.ranks > path.nodes) bus = std::min(bus, path.intra_bandwidth);
  const Seconds traffic = bus_factor(kind, path.ranks) * bytes / (bus * cost.ring_bandwidth);
  return {latency + traffic, latency, traffic, CollectiveAlgorithm::kRing, cost.protocol};
}

// Traffic of an all-reduce over two binary trees at the busiest node, per direction, in message
// sizes. Each tree carries half of the message. The node sends to a parent and two children in one
// tree and to a parent in the other: 4 halves. On two nodes, a factor of 1 would suffice. The
// factor is 2 there too, because NCCL's tuner assumes half of the bandwidth for trees, and
// tensor-parallel groups over two nodes took the time of a ring (tp 16 of
// data/published_runs/vtrain_a100_multi.csv).
constexpr double kTreeCrossings = 2.0;

// Achieved share of the bandwidth that the tuner assumes for trees with the Simple protocol. The
// tuner's correction table (treeCorrectionFactor) ends with 0.9 for 128 to 512 MB. At 1 GB and
// more, measured trees reach 0.92 x 0.92 of the ring's bandwidth on eight nodes with InfiniBand
// (36.8 and 43.6 GB/s, NVIDIA/nccl issue 319), and 0.86 x 0.92 on five nodes of eight GPUs with
// four RoCE NICs (150 and 190 GB/s, issue 1368). The tuner assumes 0.92.
constexpr double kTreeReached = 0.9;
// Last size in the tuner's correction table (twice this size in the newest NCCL releases). For
// larger messages the tuner assumes the full bandwidth for trees.
constexpr Bytes kLastCorrection(256.0 * 1024 * 1024);

// All-reduce up and down two binary trees of nodes, with a chain inside each node. `reached`:
// achieved share of the bandwidth that the tuner assumes.
CollectiveEstimate tree_estimate(Bytes bytes, const CollectivePath& path, const ProtocolCost& cost,
                                 double reached) {
  const double members =
      std::ceil(static_cast<double>(path.ranks) / static_cast<double>(path.nodes));
  // Data goes up the chain of a node and the tree of nodes, and down again: twice the hops.
  const double depth = std::ceil(std::log2(static_cast<double>(path.nodes)));
  const Seconds latency = path.base_latency + cost.base +
                          2 * ((members - 1) * (path.intra_latency + cost.intra_hop) +
                               depth * (path.inter_latency + cost.inter_hop));
  const double share =
      cost.tree_bandwidth * (cost.protocol == CollectiveProtocol::kSimple ? reached : 1.0);
  Seconds traffic = members > 1 ? 2 * bytes / (path.intra_bandwidth * share) : Seconds();
  if (path.nodes > 1) {
    traffic = std::max(traffic, kTreeCrossings * bytes / (path.inter_bandwidth * share));
  }
  return {latency + traffic, latency, traffic, CollectiveAlgorithm::kTree, cost.protocol};
}

// All-to-all: each rank sends one part to each other rank, all at the same time. Parts for ranks of
// the same node use the links of the node. Parts for other nodes share the node's NICs. Each peer
// after the first adds latency (docs/decisions/collectives.md).
constexpr Seconds kFurtherPeer(0.3e-6);
CollectiveEstimate direct_estimate(Bytes bytes, const CollectivePath& path,
                                   const ProtocolCost& cost) {
  const auto ranks = static_cast<double>(path.ranks);
  const double members = path.limiting_ranks > 0
                             ? static_cast<double>(path.limiting_ranks)
                             : std::ceil(ranks / static_cast<double>(path.nodes));
  const Seconds hop =
      path.nodes > 1 ? path.inter_latency + cost.inter_hop : path.intra_latency + cost.intra_hop;
  const Seconds latency = path.base_latency + cost.base + hop + (ranks - 2) * kFurtherPeer;
  Seconds traffic = (members - 1) / ranks * bytes / (path.intra_bandwidth * cost.ring_bandwidth);
  if (path.nodes > 1) {
    const double leaving = members * (ranks - members) / ranks;
    traffic = std::max(traffic, leaving * bytes / (path.inter_bandwidth * cost.ring_bandwidth));
  }
  return {latency + traffic, latency, traffic, CollectiveAlgorithm::kDirect, cost.protocol};
}

}  // namespace

double bus_factor(CollectiveKind kind, std::int64_t ranks) {
  switch (kind) {
    case CollectiveKind::kAllReduce: return 2 * fraction_of_others(ranks);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll: return fraction_of_others(ranks);
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: return 1;
  }
  return 1;
}

std::int64_t ring_steps(CollectiveKind kind, std::int64_t ranks) {
  switch (kind) {
    case CollectiveKind::kAllReduce: return 2 * (ranks - 1);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kBroadcast: return ranks - 1;
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: return 1;
  }
  return 1;
}

// Chooses the protocol as NCCL's tuner, which counts one hop for a broadcast because it assumes a
// filled pipeline. The returned time counts all hops, because each message fills the ring again
// (tuning.cc: sameChannels; "waiting for proper chunk modeling" upstream).
CollectiveEstimate broadcast_estimate(Bytes bytes, const CollectivePath& path) {
  CollectiveEstimate chosen;
  Seconds least(INFINITY);
  for (const ProtocolCost& cost : kProtocols) {
    const CollectiveEstimate ring = ring_estimate(CollectiveKind::kBroadcast, bytes, path, cost);
    const Seconds hop =
        path.nodes > 1 ? path.inter_latency + cost.inter_hop : path.intra_latency + cost.intra_hop;
    const Seconds as_tuned = path.base_latency + cost.base + hop + ring.traffic;
    if (as_tuned < least) {
      least = as_tuned;
      chosen = ring;
    }
  }
  return chosen;
}

// Chooses ring or tree as NCCL's tuner does. Above kLastCorrection the tuner overestimates the
// bandwidth of trees. For groups of hundreds of ranks it then chooses trees, although rings are
// faster.
CollectiveEstimate all_reduce_estimate(Bytes bytes, const CollectivePath& path) {
  const double granted = bytes > kLastCorrection ? 1.0 : kTreeReached;
  CollectiveEstimate chosen;
  Seconds least(INFINITY);
  for (const ProtocolCost& cost : kProtocols) {
    const CollectiveEstimate ring = ring_estimate(CollectiveKind::kAllReduce, bytes, path, cost);
    if (ring.time < least) {
      least = ring.time;
      chosen = ring;
    }
    // On one node the tree is a chain, with as many hops as the ring and more traffic.
    if (path.nodes == 1) continue;
    const Seconds tree = tree_estimate(bytes, path, cost, granted).time;
    if (tree < least) {
      least = tree;
      chosen = tree_estimate(bytes, path, cost, kTreeReached);
    }
  }
  return chosen;
}

CollectiveEstimate nccl_estimate(CollectiveKind kind, Bytes bytes, const CollectivePath& path) {
  CollectiveEstimate best;
  if (path.ranks <= 1 || bytes.value() <= 0) return best;
  if (kind == CollectiveKind::kBroadcast) return broadcast_estimate(bytes, path);
  if (kind == CollectiveKind::kAllReduce) return all_reduce_estimate(bytes, path);
  best.time = Seconds(INFINITY);
  for (const ProtocolCost& cost : kProtocols) {
    const CollectiveEstimate ring = kind == CollectiveKind::kAllToAll
                                        ? direct_estimate(bytes, path, cost)
                                        : ring_estimate(kind, bytes, path, cost);
    if (ring.time < best.time) best = ring;
  }
  return best;
}

}  // namespace tpsim

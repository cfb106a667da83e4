#include "costs/collective_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/numbers.h"

namespace tpsim {
namespace {

// NCCL's tuner: base latency of a ring with the LL protocol.
constexpr Seconds kNcclBaseLatency(6.6e-6);

bool is_transfer(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
}

bool performs_alike(const LinkSpec& a, const LinkSpec& b) {
  return a.bandwidth == b.bandwidth && a.efficiency == b.efficiency && a.latency == b.latency;
}

std::string describe(const CollectiveEstimate& estimate) {
  return fmt::format("{} {}: latency {} + traffic {}", name_of(estimate.algorithm),
                     name_of(estimate.protocol), to_string(estimate.latency),
                     to_string(estimate.traffic));
}

}  // namespace

CollectiveCostModel::CollectiveCostModel(const Profile& profile, const ClusterSpec& cluster)
    : table_(profile.collectives),
      cluster_(cluster),
      profile_name_(profile.name),
      base_latency_(kNcclBaseLatency),
      intra_latency_(cluster.intra_node.latency) {
  calibrate_latencies();
  const bool is_stated = profile.link.bandwidth > BytesPerSecond();
  if (is_stated && !performs_alike(profile.link, cluster.intra_node)) move_samples(profile);
}

// Scales each sample from the profile's link to the cluster's link, by the ratio of modelled times.
// The table is rebuilt, so that times still never decrease with bytes.
void CollectiveCostModel::move_samples(const Profile& profile) {
  const LinkSpec& measured_on = profile.link;
  CollectivePath here = path_of({});
  CollectivePath there = here;
  there.intra_bandwidth = measured_on.efficiency * measured_on.bandwidth;
  if (measured_on.latency > Seconds()) {
    here.intra_latency *= cluster_.intra_node.latency / measured_on.latency;
  }
  std::vector<CollectiveSample> moved = profile.collectives;
  for (CollectiveSample& sample : moved) {
    here.ranks = there.ranks = sample.ranks;
    const CollectiveEstimate on_this = nccl_estimate(sample.kind, sample.bytes, here);
    const CollectiveEstimate on_that = nccl_estimate(sample.kind, sample.bytes, there);
    sample.median *= on_this.time / on_that.time;
  }
  table_ = CollectiveTable(moved);
  intra_latency_ = here.intra_latency;
  moved_from_ = fmt::format("{} of {}", measured_on.kind, to_string(measured_on.bandwidth));
}

// Computes the base latency and the latency of a hop from the smallest measured all-reduce at the
// lowest and the highest rank count n: t(n) = base + 2 (n-1) hop.
void CollectiveCostModel::calibrate_latencies() {
  const std::vector<std::int64_t> counts = table_.rank_counts(CollectiveKind::kAllReduce);
  if (counts.size() < 2) return;
  const double few = static_cast<double>(counts.front());
  const double many = static_cast<double>(counts.back());
  const Bytes least(1);
  const Seconds at_few = *table_.time(CollectiveKind::kAllReduce, counts.front(), least);
  const Seconds at_many = *table_.time(CollectiveKind::kAllReduce, counts.back(), least);
  const Seconds hop = (at_many - at_few) / (2 * (many - few));
  const Seconds base = at_few - 2 * (few - 1) * hop;
  // If small messages do not get slower with more ranks, the samples are noise: keep the defaults.
  if (hop.value() <= 0 || base.value() <= 0) return;
  intra_latency_ = hop;
  base_latency_ = base;
}

NodeShape CollectiveCostModel::node_of(const NodeShape& limiting) const {
  return limiting.gpus > 0 ? limiting : NodeShape{cluster_.gpus_per_node, cluster_.nics_per_node};
}

// Returns the bandwidth of one group out of a node. The group uses the NICs of its members' GPUs
// and shares them with the other groups on the node.
BytesPerSecond CollectiveCostModel::group_bandwidth(const GroupPlacement& placement) const {
  const NodeShape node = node_of(placement.node);
  const std::int64_t ranks_per_node = placement.ranks_per_node;
  const double nics = static_cast<double>(node.nics);
  // If GPUs share a NIC, each of them can use the whole NIC.
  const double nics_per_gpu = std::max(1.0, nics / static_cast<double>(node.gpus));
  double reached = std::min(nics, nics_per_gpu * static_cast<double>(ranks_per_node));
  if (cluster_.nccl_channels > 0) {
    reached = std::min(reached, static_cast<double>(cluster_.nccl_channels));
  }
  const double groups = static_cast<double>(std::max<std::int64_t>(1, placement.groups_per_node));
  const double share = nics / groups;
  // Rings of different groups may choose the same NIC: ClusterSpec::nic_collision_efficiency.
  const bool collide = ranks_per_node > 1 && groups > 1;
  const double left =
      collide ? std::pow(cluster_.nic_collision_efficiency, 1 + std::log2(groups) / 2) : 1.0;
  return left * std::min(reached, share) * cluster_.inter_node.efficiency *
         cluster_.inter_node.bandwidth;
}

CollectivePath CollectiveCostModel::path_of(const GroupPlacement& placement) const {
  CollectivePath path;
  path.ranks = placement.ranks;
  path.nodes = placement.nodes;
  if (placement.node.gpus > 0) path.limiting_ranks = placement.ranks_per_node;
  path.intra_bandwidth = cluster_.intra_node.efficiency * cluster_.intra_node.bandwidth;
  path.inter_bandwidth = group_bandwidth(placement);
  path.base_latency = base_latency_;
  path.intra_latency = intra_latency_;
  path.inter_latency = cluster_.inter_node.latency;
  return path;
}

CollectivePath CollectiveCostModel::transfer_path(bool crosses_nodes, std::int64_t senders_per_node,
                                                  const NodeShape& node) const {
  CollectivePath path = path_of({.ranks = 2,
                                 .nodes = crosses_nodes ? 2 : 1,
                                 .ranks_per_node = 1,
                                 .groups_per_node = senders_per_node,
                                 .node = node});
  if (!crosses_nodes) return path;
  const BytesPerSecond most = (1 / cluster_.inter_node.efficiency) * path.inter_bandwidth;
  path.inter_bandwidth = std::min(most, cluster_.p2p_efficiency * path.inter_bandwidth);
  return path;
}

Seconds CollectiveCostModel::price(CollectiveKind kind, Bytes bytes,
                                   const GroupPlacement& placement) const {
  if (placement.ranks <= 1 || bytes.value() <= 0) return Seconds();
  if (is_transfer(kind)) {
    return price_point_to_point(bytes, placement.nodes > 1, placement.groups_per_node,
                                placement.node);
  }
  // The samples of a profile were measured inside one machine.
  if (placement.nodes == 1) {
    if (const auto measured = table_.time(kind, placement.ranks, bytes)) return *measured;
  }
  return nccl_estimate(kind, bytes, path_of(placement)).time;
}

Seconds CollectiveCostModel::price_owner_broadcasts(Bytes bytes,
                                                    const GroupPlacement& placement) const {
  if (placement.ranks <= 1 || bytes.value() <= 0) return Seconds();
  CollectivePath path = path_of(placement);
  const double share = std::min(1.0, static_cast<double>(node_of(placement.node).nics) /
                                         static_cast<double>(placement.groups_per_node));
  path.inter_bandwidth = std::min(
      path.inter_bandwidth, share * cluster_.inter_node.efficiency * cluster_.inter_node.bandwidth);
  return nccl_estimate(CollectiveKind::kBroadcast, bytes, path).time;
}

Seconds CollectiveCostModel::price_dispatch(Bytes network, Bytes inside, BytesPerSecond most,
                                            const GroupPlacement& placement) const {
  if (placement.ranks <= 1) return Seconds();
  const CollectivePath path = path_of(placement);
  Seconds traffic = inside / std::min(path.intra_bandwidth, most);
  Seconds latency = path.base_latency + path.intra_latency;
  if (placement.nodes > 1) {
    const auto senders = static_cast<double>(placement.ranks_per_node);
    traffic = std::max(traffic, senders * network / path.inter_bandwidth);
    latency += path.inter_latency;
  }
  return latency + traffic;
}

Seconds CollectiveCostModel::price_point_to_point(Bytes bytes, bool crosses_nodes,
                                                  std::int64_t senders_per_node,
                                                  const NodeShape& node) const {
  if (bytes.value() <= 0) return Seconds();
  if (!crosses_nodes) {
    if (const auto measured = table_.time(CollectiveKind::kSend, 2, bytes)) return *measured;
  }
  return nccl_estimate(CollectiveKind::kSend, bytes,
                       transfer_path(crosses_nodes, senders_per_node, node))
      .time;
}

std::string CollectiveCostModel::explain(CollectiveKind kind, Bytes bytes,
                                         const GroupPlacement& placement) const {
  if (placement.ranks <= 1 || bytes.value() <= 0) return "nothing to move: 0 s";
  if (is_transfer(kind)) {
    return explain_point_to_point(bytes, placement.nodes > 1, placement.groups_per_node,
                                  placement.node);
  }
  const std::string what =
      fmt::format("{} of {} over {} ranks", name_of(kind), to_string(bytes), placement.ranks);
  if (placement.nodes == 1 && table_.time(kind, placement.ranks, bytes)) {
    const std::string moved =
        moved_from_.empty()
            ? ""
            : fmt::format(", scaled from {} to {} of {} by modelled NCCL times", moved_from_,
                          cluster_.intra_node.kind, to_string(cluster_.intra_node.bandwidth));
    return fmt::format(
        "{} of one node: {}, interpolated between the sizes measured in profile {}{}", what,
        to_string(price(kind, bytes, placement)), profile_name_, moved);
  }
  const CollectivePath path = path_of(placement);
  const CollectiveEstimate estimate = nccl_estimate(kind, bytes, path);
  return fmt::format(
      "{} on {}: {} = {}; bus factor {:.3f}, {} inside a node, {} between nodes ({} NICs x {} x "
      "efficiency {:.2f}, {} groups share them), hops {} and {} ({})",
      what, counted_text(placement.nodes, "node"), to_string(estimate.time), describe(estimate),
      bus_factor(kind, placement.ranks), to_string(path.intra_bandwidth),
      to_string(path.inter_bandwidth), node_of(placement.node).nics,
      to_string(cluster_.inter_node.bandwidth), cluster_.inter_node.efficiency,
      placement.groups_per_node, to_string(path.intra_latency), to_string(path.inter_latency),
      cluster_.source);
}

std::string CollectiveCostModel::explain_point_to_point(Bytes bytes, bool crosses_nodes,
                                                        std::int64_t senders_per_node,
                                                        const NodeShape& node) const {
  if (bytes.value() <= 0) return "nothing to move: 0 s";
  const CollectivePath path = transfer_path(crosses_nodes, senders_per_node, node);
  const CollectiveEstimate estimate = nccl_estimate(CollectiveKind::kSend, bytes, path);
  return fmt::format("transfer of {} {}: {} = {}; {} ({} senders per node, {})", to_string(bytes),
                     crosses_nodes ? "between nodes" : "inside a node",
                     to_string(price_point_to_point(bytes, crosses_nodes, senders_per_node, node)),
                     describe(estimate),
                     to_string(crosses_nodes ? path.inter_bandwidth : path.intra_bandwidth),
                     senders_per_node, cluster_.source);
}

}  // namespace tpsim

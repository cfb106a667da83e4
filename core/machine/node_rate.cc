#include "core/machine/node_rate.h"

#include <algorithm>
#include <cmath>

namespace tpsim {

ClusterSpec with_node_rate(ClusterSpec cluster, double node_gbps) {
  constexpr double kRounding = 1e-9;
  const double own = node_rate_of(cluster);
  if (std::abs(node_gbps - own) <= kRounding * own) return cluster;
  constexpr double kCommonNic = 100;
  const auto common = static_cast<std::int64_t>(std::ceil(node_gbps / kCommonNic));
  if (cluster.unequal_nodes.empty()) {
    cluster.nics_per_node = std::min(cluster.gpus_per_node, common);
  }
  cluster.inter_node.bandwidth =
      BytesPerSecond(node_gbps * 1e9 / 8 / static_cast<double>(cluster.nics_per_node));
  return cluster;
}

ClusterSpec with_network_of(const ClusterSpec& source, ClusterSpec cluster) {
  for (NodeShape& node : cluster.unequal_nodes) {
    const std::int64_t nics = node.nics * source.nics_per_node / cluster.nics_per_node;
    node.nics = std::max<std::int64_t>(1, nics);
  }
  cluster.inter_node = source.inter_node;
  cluster.nics_per_node = source.nics_per_node;
  return cluster;
}

double node_rate_of(const ClusterSpec& cluster) {
  return cluster.inter_node.bandwidth.value() * 8 * 1e-9 *
         static_cast<double>(cluster.nics_per_node);
}

}  // namespace tpsim

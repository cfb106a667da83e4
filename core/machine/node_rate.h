// The network bandwidth of a cluster as one rate per node.
#pragma once

#include "core/machine/cluster_spec.h"

namespace tpsim {

// Returns the cluster with `node_gbps` Gb/s per node: one direction, all NICs together. If this is
// the cluster's own rate, the cluster is unchanged. Otherwise NICs have 100 Gb/s each, with at most
// one NIC per GPU; nodes that differ keep their NICs. Latency and efficiency are those of
// `cluster`.
ClusterSpec with_node_rate(ClusterSpec cluster, double node_gbps);

// Returns the cluster with the network and NICs of `source`. Nodes that differ have as many NICs
// relative to a whole node as before.
ClusterSpec with_network_of(const ClusterSpec& source, ClusterSpec cluster);

// Returns the rate per node of a cluster, in Gb/s.
double node_rate_of(const ClusterSpec& cluster);

}  // namespace tpsim

// The network of a cluster, stated as one rate for each node.
#pragma once

#include "core/machine/cluster_spec.h"

namespace tpsim {

// The cluster with `node_gbps` Gb/s leaving each node: one direction, all NICs together. The
// cluster's own rate leaves it as it is. Otherwise the NICs have 100 Gb/s each, with at most one
// NIC per GPU. Latency and efficiency stay those of `cluster`.
ClusterSpec with_node_rate(ClusterSpec cluster, double node_gbps);

// The same rate of a cluster, in Gb/s.
double node_rate_of(const ClusterSpec& cluster);

}  // namespace tpsim

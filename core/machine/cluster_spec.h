// The cluster: nodes, links and hosts. Profile describes one GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/machine/calibration_facts.h"
#include "core/machine/link_spec.h"

namespace tpsim {

// Host CPUs and memory of a node. Used for optimizer offload only.
struct HostSpec {
  std::string source =
      "assumed, since the cluster states no host: a PCIe 4.0 x16 link to each GPU, two sockets "
      "with eight channels of DDR4-3200 each, of which half is reached, and 1 TB of memory";
  BytesPerSecond link{32e9};               // between one GPU and host memory, one direction
  double link_efficiency = 0.8;            // share of `link` that large copies reach
  BytesPerSecond memory_bandwidth{400e9};  // of the whole node
  double memory_efficiency = 0.5;          // share of it that an optimizer update reaches
  Bytes memory{1e12};                      // of the whole node
};

// One of several nodes that differ.
struct NodeShape {
  std::int64_t gpus = 0;
  std::int64_t nics = 0;
  friend bool operator==(const NodeShape&, const NodeShape&) = default;
};

struct ClusterSpec {
  std::string name;
  std::string source;
  std::string aliases;  // names in tables of measured runs, comma-separated
  std::string profile;  // catalogue name of the GPU's profile
  std::string stack;    // catalogue name of the default software stack
  // GPUs whose measured runs are predicted on this cluster if they name none: "A100-40GB", or
  // "A100+NeMo" with the start of the framework's name, "A100 until 2024-09" for rows of that date
  // and earlier. Comma-separated.
  std::string usual_for;
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 8;  // GPUs that share the intra-node links: an NVLink domain
  // GPUs per host, if hosts are smaller than nodes, as the trays of an NVL72 rack are. A host
  // starts and fails as a unit and owns the host memory. 0: the host is the node.
  std::int64_t gpus_per_host = 0;
  // GPUs per node used by a job that is larger than one node and whose size is not a multiple of
  // gpus_per_node, such as 64 of 72. 0: all GPUs.
  std::int64_t partly_used_gpus = 0;
  std::int64_t nics_per_node = 1;
  // Nodes that differ from each other, such as those that a scheduler gave to a job
  // (core/machine/allocation.h). gpus_per_node and nics_per_node are then those of a whole node.
  // Empty: `nodes` equal ones.
  std::vector<NodeShape> unequal_nodes;
  LinkSpec intra_node;
  LinkSpec inter_node;
  HostSpec host;
  // Channels that NCCL opens between nodes for one communicator, each through one NIC. 0: one
  // channel per NIC next to the communicator's ranks.
  std::int64_t nccl_channels = 0;
  // Bandwidth loss if NCCL rings of concurrent groups choose the same NICs. It applies to g > 1
  // groups with several ranks each on the node: they get nic_collision_efficiency^(1 + log2(g) / 2)
  // of the node's bandwidth. A single group (all NICs) and groups with one rank per node (the
  // nearest NIC each) have no loss.
  double nic_collision_efficiency = 1.0;
  // Ratio of the bandwidth of P2P sends between pipeline stages to that of collectives between
  // nodes. The resulting bandwidth is capped at the link's.
  double p2p_efficiency = 1.0;
  // Ratio of the GPU clock sustained in GEMMs to that of the profile. Power limits and cooling can
  // reduce it.
  double gpu_clock = 1.0;
  CalibrationFacts calibrated;  // set if the user fitted this file with tpsim calibrate
};

// GPUs of one host.
constexpr std::int64_t host_size(const ClusterSpec& cluster) {
  return cluster.gpus_per_host > 0 ? cluster.gpus_per_host : cluster.gpus_per_node;
}
// GPUs that a job of this total size uses per node.
constexpr std::int64_t node_size(const ClusterSpec& cluster, std::int64_t gpus) {
  const bool fills = gpus <= cluster.gpus_per_node || gpus % cluster.gpus_per_node == 0;
  return fills || cluster.partly_used_gpus == 0 ? cluster.gpus_per_node : cluster.partly_used_gpus;
}
// Returns how many GPUs the cluster has.
constexpr std::int64_t gpus_of(const ClusterSpec& cluster) {
  if (cluster.unequal_nodes.empty()) return cluster.nodes * cluster.gpus_per_node;
  std::int64_t gpus = 0;
  for (const NodeShape& node : cluster.unequal_nodes) gpus += node.gpus;
  return gpus;
}
// Returns how many GPUs the cluster offers a job that uses node_size(cluster, gpus) GPUs per node.
constexpr std::int64_t gpus_for(const ClusterSpec& cluster, std::int64_t gpus) {
  if (!cluster.unequal_nodes.empty()) return gpus_of(cluster);
  return cluster.nodes * node_size(cluster, gpus);
}

}  // namespace tpsim

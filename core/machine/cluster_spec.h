// The cluster: nodes, links and hosts. Profile describes one GPU.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/units.h"
#include "core/machine/calibration_facts.h"
#include "core/machine/link_spec.h"

namespace tpsim {

// The host, for optimizer offload.
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

struct ClusterSpec {
  std::string name;
  std::string source;
  std::string aliases;  // names in tables of measured runs, comma-separated
  std::string profile;  // catalogue name of the GPU's profile
  std::string stack;    // catalogue name of the default software stack
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 8;  // GPUs that share the intra-node links: an NVLink domain
  // GPUs per host, if hosts are smaller than nodes, as the trays of an NVL72 rack are. A host
  // starts and fails as a unit and owns the host memory. 0: the host is the node.
  std::int64_t gpus_per_host = 0;
  // GPUs per node used by a job that is larger than one node and not a multiple of nodes: 64 of 72.
  // 0: all GPUs.
  std::int64_t partly_used_gpus = 0;
  std::int64_t nics_per_node = 1;
  LinkSpec intra_node;
  LinkSpec inter_node;
  HostSpec host;
  // Channels that NCCL opens between nodes for one communicator, each through one NIC. 0: as many
  // as there are NICs next to its ranks.
  std::int64_t nccl_channels = 0;
  // Collisions on NICs: rings of different groups choose NICs independently. Assume g > 1
  // concurrent groups with several ranks each on the node. Their usable share of the node's
  // bandwidth is nic_collision_efficiency^(1 + log2(g) / 2). A single group uses all NICs, and
  // groups with one rank per node use the nearest NIC. Neither collides.
  double nic_collision_efficiency = 1.0;
  // Bandwidth of P2P sends between pipeline stages over that of collectives between nodes. The
  // result is capped by the link.
  double p2p_efficiency = 1.0;
  // GPU clock sustained in GEMMs over that of the profile: power limits, cooling.
  double gpu_clock = 1.0;
  CalibrationFacts calibrated;  // of this file by the user
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
// Largest number of GPUs for a job with this number of GPUs per node.
constexpr std::int64_t gpus_for(const ClusterSpec& cluster, std::int64_t gpus) {
  return cluster.nodes * node_size(cluster, gpus);
}

}  // namespace tpsim

// The machines: nodes, links and prices. What one GPU does is in its Profile.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/units.h"
#include "core/machine/calibration_facts.h"
#include "core/machine/link_spec.h"

namespace tpsim {

// The host beside the GPUs, as far as the optimizer's state may lie there.
struct HostSpec {
  std::string source =
      "assumed, since the cluster states no host: a PCIe 4.0 x16 link to each GPU, two sockets "
      "with eight channels of DDR4-3200 each, of which half is reached, and 1 TB of memory";
  BytesPerSecond link{32e9};               // between one GPU and the host's memory, one direction
  double link_efficiency = 0.8;            // share of it that large copies reach
  BytesPerSecond memory_bandwidth{400e9};  // of the whole node
  double memory_efficiency = 0.5;          // share of it that an update of the optimizer reaches
  Bytes memory{1e12};                      // of the whole node
};

struct ClusterSpec {
  std::string name;
  std::string source;
  std::string aliases;  // words of tables of measured runs, with commas between them
  std::string profile;  // catalogue name of the GPU's profile
  std::string stack;    // catalogue name of the software stack it runs by default
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 8;  // that reach each other over the links inside: an NVLink domain
  // Hosts may be smaller, as the trays of an NVL72 rack are: what starts, fails and holds the
  // host's memory. 0: a host is a node.
  std::int64_t gpus_per_host = 0;
  // Of every node, a job that is larger than one and does not fill nodes takes so many: 64 of 72.
  // 0: it fills them.
  std::int64_t partly_used_gpus = 0;
  std::int64_t nics_per_node = 1;
  LinkSpec intra_node;
  LinkSpec inter_node;
  HostSpec host;
  // Channels that NCCL opens between nodes for one communicator, each through one NIC; 0: as many
  // as there are NICs next to its ranks.
  std::int64_t nccl_channels = 0;
  // What collisions leave of a node's bandwidth where g > 1 groups with several ranks on it each
  // communicate at once: their rings choose NICs without knowing of each other. The share is this
  // one to the power of 1 + log2(g) / 2. A group alone has its rings spread over all NICs, and
  // groups with one rank on the node each use the NIC next to it.
  double nic_collision_efficiency = 1.0;
  // Of what collectives reach between nodes, sends between pipeline stages reach so much, up to the
  // link itself.
  double p2p_efficiency = 1.0;
  // Clocks that its GPUs sustain in products over those of the profile: power limits, cooling.
  double gpu_clock = 1.0;
  CalibrationFacts calibrated;  // of this file by its user
};

// GPUs of one host.
constexpr std::int64_t host_size(const ClusterSpec& cluster) {
  return cluster.gpus_per_host > 0 ? cluster.gpus_per_host : cluster.gpus_per_node;
}
// GPUs that a job of so many takes of every node.
constexpr std::int64_t node_size(const ClusterSpec& cluster, std::int64_t gpus) {
  const bool fills = gpus <= cluster.gpus_per_node || gpus % cluster.gpus_per_node == 0;
  return fills || cluster.partly_used_gpus == 0 ? cluster.gpus_per_node : cluster.partly_used_gpus;
}
// GPUs that such a job can have.
constexpr std::int64_t gpus_for(const ClusterSpec& cluster, std::int64_t gpus) {
  return cluster.nodes * node_size(cluster, gpus);
}

}  // namespace tpsim

#include "costs/machine_cluster.h"

#include <algorithm>

#include "core/scenario/measured_stack.h"
#include "costs/nccl_model.h"

namespace tpsim {
namespace {

LinkSpec link_measured_on(const Profile& profile) {
  if (profile.link.bandwidth > BytesPerSecond()) return profile.link;
  LinkSpec link;
  link.kind = "inside the machine";
  link.latency = profile.model.kernel_latency;
  for (const CollectiveSample& sample : profile.collectives) {
    const BytesPerSecond bus = bus_factor(sample.kind, sample.ranks) * sample.bytes / sample.median;
    link.bandwidth = std::max(link.bandwidth, bus);
    link.latency = std::min(link.latency, sample.median);
  }
  // No collective was measured, for instance on a machine with one device: use an upper bound.
  if (link.bandwidth <= BytesPerSecond()) link.bandwidth = profile.device.memory_bandwidth;
  return link;
}

}  // namespace

ClusterSpec machine_cluster(const Profile& profile) {
  ClusterSpec cluster;
  cluster.name = kThisMachine;
  cluster.source = "measured, " + profile.source;
  cluster.profile = profile.name;
  cluster.stack = own_stack(profile);
  cluster.nodes = 1;
  cluster.gpus_per_node = profile.machine.devices;
  cluster.intra_node = cluster.inter_node = link_measured_on(profile);
  return cluster;
}

}  // namespace tpsim

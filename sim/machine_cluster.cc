#include "sim/machine_cluster.h"

#include <algorithm>
#include <cmath>

#include "sim/nccl_model.h"

namespace tpsim {

ClusterSpec machine_cluster(const Profile& profile) {
  ClusterSpec cluster;
  cluster.name = kThisMachine;
  cluster.source = "measured, " + profile.source;
  cluster.profile = profile.name;
  cluster.stack = profile.device.asynchronous ? "reference" : "reference-cpu";
  cluster.nodes = 1;
  cluster.gpus_per_node = profile.machine.devices;
  LinkSpec& link = cluster.intra_node;
  link.kind = "inside the machine";
  link.latency = profile.model.kernel_latency;
  for (const CollectiveSample& sample : profile.collectives) {
    const BytesPerSecond bus = bus_factor(sample.kind, sample.ranks) * sample.bytes / sample.median;
    link.bandwidth = std::max(link.bandwidth, bus);
    link.latency = std::min(link.latency, sample.median);
  }
  if (link.bandwidth <= BytesPerSecond()) link.bandwidth = profile.device.memory_bandwidth;
  cluster.inter_node = link;
  return cluster;
}

StackSpec stack_on_machine(StackSpec stack, const Profile& profile) {
  stack.rank_jitter = std::hypot(stack.rank_jitter, profile.machine.rank_jitter);
  return stack;
}

}  // namespace tpsim

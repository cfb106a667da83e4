#include "costs/machine_cluster.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "costs/nccl_model.h"

namespace tpsim {

std::string_view own_stack(const Profile& profile) {
  return profile.device.asynchronous ? "reference" : "reference-cpu";
}

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

StackSpec stack_as_measured(StackSpec stack, const Profile& profile) {
  const RuntimeFacts& runtime = profile.runtime;
  if (stack.name != own_stack(profile)) return stack;
  if (runtime.context > Bytes()) stack.memory.context = runtime.context;
  if (runtime.launch > Seconds()) stack.host.per_op = runtime.launch;
  return stack;
}

StackSpec executed_stack(const StackSpec& named, StackSpec own) {
  own.training = named.training;
  own.training.overlap_parameter_gather = false;
  return own;
}

StackSpec completed_stack(StackSpec stack, const PartValues& parts, const Profile& profile,
                          const ClusterSpec& cluster) {
  stack = stack_as_measured(with_parts(std::move(stack), parts), profile);
  if (cluster.name != kThisMachine) return stack;
  // The variances of two independent causes of jitter add up.
  stack.rank_jitter = std::hypot(stack.rank_jitter, profile.machine.rank_jitter);
  return stack;
}

}  // namespace tpsim

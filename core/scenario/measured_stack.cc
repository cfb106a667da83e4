#include "core/scenario/measured_stack.h"

#include <cmath>
#include <utility>

namespace tpsim {

std::string_view own_stack(const Profile& profile) {
  return profile.device.asynchronous ? "reference" : "reference-cpu";
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

// The machine of a profile, as a cluster of one node.
#pragma once

#include <string_view>

#include "core/machine/cluster_spec.h"
#include "core/machine/profile.h"
#include "core/software/stack_spec.h"

namespace tpsim {

// Name of this machine in --cluster and in plan files.
inline constexpr std::string_view kThisMachine = "this-machine";

// Returns the link of the profile's collectives: the stated link, else their best bus bandwidth and
// lowest latency. Without collectives, the device's memory bandwidth.
LinkSpec link_measured_on(const Profile& profile);
// Returns a cluster with one device per rank: the cores of a CPU, or the GPUs. The link is
// link_measured_on(). Requires machine.devices above zero in the profile.
ClusterSpec machine_cluster(const Profile& profile);
// Returns the stack. If the stack wrote the profile, its device memory and host time per op are the
// measured ones.
StackSpec stack_as_measured(StackSpec stack, const Profile& profile);
// Catalogue name of the software that wrote the profile: this program.
std::string_view own_stack(const Profile& profile);
// Returns the stack for executing `named` here: the software parts of `named` with the host and
// memory properties of `own`. Weight gathers do not overlap with the next forward.
StackSpec executed_stack(const StackSpec& named, StackSpec own);
// Returns the stack with the rank jitter of this machine.
StackSpec stack_on_machine(StackSpec stack, const Profile& profile);

}  // namespace tpsim

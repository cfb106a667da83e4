// The machine that a profile was measured on, as a cluster of one node.
#pragma once

#include <string_view>

#include "core/machine/cluster_spec.h"
#include "core/machine/profile.h"
#include "core/software/stack_spec.h"

namespace tpsim {

// What --cluster and plan files call it.
inline constexpr std::string_view kThisMachine = "this-machine";

// What the profile's collectives went over: as it states, else their best bus bandwidth and their
// least latency; without any, the device's memory bandwidth.
LinkSpec link_measured_on(const Profile& profile);
// A device for each rank: the cores of a CPU, the GPUs. The link between them is
// link_measured_on(). The profile says how many devices there are (machine.devices above zero).
ClusterSpec machine_cluster(const Profile& profile);
// The software; where it is what wrote the profile, with the device memory and the host's time for
// an op that the profile measured.
StackSpec stack_as_measured(StackSpec stack, const Profile& profile);
// The catalogue's name of the software that wrote the profile: this program.
std::string_view own_stack(const Profile& profile);
// What runs here in the place of `named`: `own` executes what `named` would have its ranks execute,
// with its own host and memory. It gathers no weights beside the next forward.
StackSpec executed_stack(const StackSpec& named, StackSpec own);
// The software, with what its ranks' times vary on this machine.
StackSpec stack_on_machine(StackSpec stack, const Profile& profile);

}  // namespace tpsim

// Stacks on the machine on which a profile was measured, and the stack of tpsim's own ranks.
#pragma once

#include <string_view>

#include "core/machine/cluster_spec.h"
#include "core/machine/profile.h"
#include "core/software/stack_parts.h"
#include "core/software/stack_spec.h"

namespace tpsim {

// Name of this machine in --cluster and in plan files.
inline constexpr std::string_view kThisMachine = "this-machine";

// Returns `stack`. If it is own_stack(profile), its context memory and its host time per op are
// replaced by the measured values of the profile.
StackSpec stack_as_measured(StackSpec stack, const Profile& profile);
// Returns the stack name of tpsim's own ranks on the profiled device: "reference" on an
// asynchronous device (GPU), else "reference-cpu".
std::string_view own_stack(const Profile& profile);
// Returns the stack that describes how tpsim executes a plan for `named`: the training options of
// `named`, with the host and memory properties of `own`. The all-gather of parameters does not
// overlap with the next forward.
StackSpec executed_stack(const StackSpec& named, StackSpec own);
// Applies the software options, and the host and memory properties that the profile measured. On
// this machine, adds the machine's measured rank jitter to that of the software.
StackSpec completed_stack(StackSpec stack, const PartValues& parts, const Profile& profile,
                          const ClusterSpec& cluster);

}  // namespace tpsim

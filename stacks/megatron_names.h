// Megatron's options as its versions and forks write them, brought to the names of today; what says
// which parts the software has; and a log's block of arguments as the options that led to it.
#pragma once

#include <vector>

#include "core/stack_parts.h"
#include "stacks/launch_command.h"

namespace tpsim {

// "--checkpoint-activations" and "--tensor_model_parallel_size" as today's options.
void use_todays_names(LaunchCommand& command);

// Takes out the options that say how the software computes what the plan says: "--no-rope-fusion"
// is rotary_kernel=torch. A named option that is left out says nothing.
PartValues take_parts(std::vector<LaunchOption>& options);

}  // namespace tpsim

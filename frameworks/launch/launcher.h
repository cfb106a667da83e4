// The launcher of a stack, and the rules that prevent its files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "core/software/launch_rules.h"
#include "core/software/stack_spec.h"
#include "frameworks/launch/launch_stack.h"

namespace tpsim {

// Returns the launcher whose arguments the files contain: `stack` itself, or for a job `launcher`
// or the launcher of the plan's stack. Nothing if the plan's stack does not have a launcher.
std::optional<LaunchStack> launcher_in(LaunchStack stack, const PlanFile& file, Launcher launcher);
// Returns an error if the plan or the software breaks a launcher rule of
// core/software/launch_rules.h.
Status check_launch_rules(LaunchStack stack, const PlanFile& file, const StackSpec& software = {});
Error cannot_express(LaunchStack stack, std::string what, std::string why);

// Whether the stack is a version of `family`: "megatron-deepspeed-bloom" is a version of
// "megatron-deepspeed". Stack files of users are matched by name, too.
bool is_version_of(const std::string& stack, std::string_view family);

}  // namespace tpsim

// Rules of launchers that depend on software parts and on the plan: those of the scopes kParts and
// kPartFiles in launch_rules.txt.
#pragma once

#include "core/software/stack_spec.h"

namespace tpsim {

using PartRule = LaunchRule;

// Returns the first rule of the stack's launcher that the plan violates; null if there is none.
const PartRule* broken_part_rule(const StackSpec& stack, const ModelSpec& model, const Plan& plan);
// Returns the first rule that prevents launch files of `launcher`, which may differ from the
// stack's. `gpu`: name of the profile.
const PartRule* broken_file_rule(Launcher launcher, const StackSpec& stack, const ModelSpec& model,
                                 const Plan& plan, std::string_view gpu);
// Returns the rule whose refusal_of() equals `refusal`; null if there is none.
const PartRule* part_rule_of(std::string_view refusal);

}  // namespace tpsim

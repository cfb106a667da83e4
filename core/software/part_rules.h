// Rules of launchers that depend on software parts and on the plan. Rules that depend on the plan
// only are in launch_rules.h.
#pragma once

#include <cstdint>

#include "core/software/stack_spec.h"

namespace tpsim {

struct PartRule {
  std::uint8_t launchers;  // bit (1 << Launcher) set: the launcher has the rule
  bool (*is_broken)(const ModelSpec&, const Plan&, const StackSpec&);
  const char* what;  // the feature that the program cannot run
  const char* why;   // the program's source line, and an alternative
  // True: only export applies the rule. For rules that another value of a second option satisfies,
  // and for rules that depend on the GPU.
  bool for_files_only = false;
  const char* gpus = "";  // the rule applies to profiles whose name starts like this
};

// Returns the first rule of the stack's launcher that the plan violates; null if there is none.
const PartRule* broken_part_rule(const StackSpec& stack, const ModelSpec& model, const Plan& plan);
// Returns the first rule that prevents launch files of `launcher`, which may differ from the
// stack's. `gpu`: name of the profile.
const PartRule* broken_file_rule(Launcher launcher, const StackSpec& stack, const ModelSpec& model,
                                 const Plan& plan, std::string_view gpu);
// Returns "the stack cannot run ...". The text is valid until the program ends.
const char* refusal_of(const PartRule& rule);
// Returns the rule whose refusal_of() equals `refusal`; null if there is none.
const PartRule* part_rule_of(std::string_view refusal);

}  // namespace tpsim

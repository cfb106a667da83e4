// Rules of launchers about a plan together with parts of its software, as launch_rules.h has them
// about the plan alone.
#pragma once

#include <cstdint>

#include "core/software/stack_spec.h"

namespace tpsim {

struct PartRule {
  std::uint8_t launchers;  // bit (1 << Launcher) set: the launcher has the rule
  bool (*is_broken)(const ModelSpec&, const Plan&, const SoftwareParts&);
  const char* what;  // that the program cannot run
  const char* why;   // the line of the program, and an alternative
};

// Returns the first broken rule of the stack's launcher; null if the launcher runs the plan.
const PartRule* broken_part_rule(const StackSpec& stack, const ModelSpec& model, const Plan& plan);
// The same for another launcher than the stack's.
const PartRule* broken_part_rule(Launcher launcher, const SoftwareParts& parts,
                                 const ModelSpec& model, const Plan& plan);
// "the stack cannot run ...": the text of a rule, for as long as the program runs.
const char* refusal_of(const PartRule& rule);
// The rule with that text; null if there is none.
const PartRule* part_rule_of(std::string_view refusal);

}  // namespace tpsim

// The behavior of a launcher where its files cannot state the value of a part. Exports that
// refuse the value print the sentence, and docs/files.md lists all of them.
#pragma once

#include <string>
#include <string_view>

#include "core/plan/plan_settings.h"
#include "core/software/stack_parts.h"
#include "frameworks/launch/launch_stack.h"

namespace tpsim {

// Returns the sentence without a full stop; it ends with the launcher's file. Empty for parts whose
// values the launcher's files state all, or where no value has an effect, and for settings, which
// core/software/launch_rules.h explains.
std::string_view fixed_behaviour(LaunchStack stack, StackPart part);

// Returns a Markdown table with a row per sentence: part, launchers, sentence.
std::string fixed_behaviour_text();

}  // namespace tpsim

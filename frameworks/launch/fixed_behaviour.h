// The behavior of a launcher where its files cannot state the value of a part. Exports that
// refuse the value print the sentence, and docs/files.md lists all of them.
#pragma once

#include <string>
#include <string_view>

#include "core/plan/plan_settings.h"
#include "core/software/stack_parts.h"
#include "frameworks/launch/launch_stack.h"

namespace tpsim {

// Values of a part that files of a launcher state.
struct StatedValues {
  bool are_all = true;
  std::string_view words = {};  // if not all: the values, separated by spaces; empty if none
  // Behavior with other values: a sentence without a full stop, which ends with the launcher's
  // file.
  std::string_view otherwise = {};
};
StatedValues stated_values(LaunchStack stack, StackPart part);

// Returns a Markdown table with a row per sentence: part, launchers, sentence.
std::string fixed_behaviour_text();

}  // namespace tpsim

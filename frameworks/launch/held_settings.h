// Whether a launcher's files can state each plan setting and software part, and what the launcher
// does with values that they cannot state. The table is held_settings.txt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/enum_words.h"
#include "core/plan/plan_settings.h"
#include "core/software/stack_parts.h"
#include "frameworks/launch/launch_stack.h"

namespace tpsim {

enum class Held : std::uint8_t {
  kWritten,   // files state the value if it has an effect; import reads it
  kNoEffect,  // the setting has no effect in plans for this launcher
  kRefused,   // files cannot state it; export refuses it, unless loss is allowed
};
template <>
inline constexpr auto kEnumNames<Held> = std::to_array<std::string_view>({"written", "no effect",
                                                                          "refused"});

// `stack` must be a launcher, not Slurm or Kubernetes.
Held held(LaunchStack stack, const SettingValue& value);
Held held(LaunchStack stack, StackPart part, std::int64_t value);
// Returns what the launcher does with values of the part that its files do not state: a sentence
// without a full stop, which ends with the launcher's file. Empty if they state all values.
std::string_view fixed_behaviour(LaunchStack stack, StackPart part);

// Returns a Markdown table with a row per setting and part and a column per launcher. Each cell is
// "written", the list of values that are written, "no effect" or "refused".
std::string held_settings_text();
// Returns a Markdown table with a row per sentence: part, launchers, sentence. Exports that refuse
// a value print the sentence.
std::string fixed_behaviour_text();

}  // namespace tpsim

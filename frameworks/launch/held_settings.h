// States for each launcher, setting and part whether the launcher's files hold it. A missing row of
// the table is a compile error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/enum_words.h"
#include "core/plan/plan_settings.h"
#include "core/software/stack_parts.h"
#include "frameworks/launch/launch_stack.h"

namespace tpsim {

enum class Held : std::uint8_t {
  kWritten,   // files state the value wherever it matters to the launcher; import reads it back
  kNoEffect,  // no plan that is exported for the launcher has it
  kRefused,   // export refuses a plan whose prediction depends on it, unless loss is allowed
};
template <>
inline constexpr auto kEnumNames<Held> = std::to_array<std::string_view>({"written", "no effect",
                                                                          "refused"});

// `stack` is a launcher: neither Slurm nor Kubernetes.
Held held(LaunchStack stack, const SettingValue& value);
Held held(LaunchStack stack, StackPart part, std::int64_t value);

// A Markdown table: a line for each setting and part, a column for each launcher, in a cell
// "written", the values that are written, "no effect" or "refused".
std::string held_settings_text();

}  // namespace tpsim

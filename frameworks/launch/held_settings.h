// Whether a launcher's files state a setting or part. A missing row of the table is a compile
// error.
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
  kWritten,   // files state the value if it matters to the launcher; import reads it back
  kNoEffect,  // plans exported for the launcher never have it
  kRefused,   // export refuses a plan whose prediction depends on it, unless loss is allowed
};
template <>
inline constexpr auto kEnumNames<Held> = std::to_array<std::string_view>({"written", "no effect",
                                                                          "refused"});

// `stack` is a launcher: neither Slurm nor Kubernetes.
Held held(LaunchStack stack, const SettingValue& value);
Held held(LaunchStack stack, StackPart part, std::int64_t value);

// Returns a Markdown table with a row per setting and part and a column per launcher. A cell is
// "written", the written values, "no effect" or "refused".
std::string held_settings_text();

}  // namespace tpsim

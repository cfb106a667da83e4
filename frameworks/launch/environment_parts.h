// Software parts that environment variables state, for all launchers.
#pragma once

#include <string>
#include <string_view>

#include "core/software/stack_parts.h"

namespace tpsim {

bool is_in_environment(StackPart part);

// Adds the part that a variable with this value states to `parts`; nothing for other variables.
void read_variable(std::string_view name, std::string_view value, PartValues& parts);

// Returns a line "export NAME=VALUE" for each of the parts.
std::string export_lines(const PartValues& parts);

}  // namespace tpsim

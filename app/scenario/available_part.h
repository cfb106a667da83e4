// Software parts that a stack does not use and that its framework's launch files can state.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/software/stack_spec.h"

namespace tpsim::app {

struct PartWord {
  StackPart part;
  std::string_view word;  // a value of the part
};

// Returns the value; nothing if the stack has it already or if the files cannot state it.
std::optional<std::int64_t> available_value(const StackSpec& stack, const PartWord& one);

}  // namespace tpsim::app

// Software parts that a search does not vary by itself, although another value may be faster or
// save memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "app/scenario/named_scenario.h"
#include "core/software/stack_spec.h"

namespace tpsim::app {

// A value of a part that computes the same training.
struct PartWord {
  StackPart part;
  std::string_view word;
  bool saves_memory = false;  // tried if no plan fits
};
std::span<const PartWord> part_words();

// Returns the value; nothing if the stack has it already, if its framework's launch files cannot
// state it, or if the request states or searches the part.
std::optional<std::int64_t> open_value(const NamedScenario& named, const PartWord& one);

// Returns the parts with an open value, and the values that they have.
PartValues held_parts(const NamedScenario& named);

}  // namespace tpsim::app

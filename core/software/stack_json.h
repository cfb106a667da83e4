// Stack files: {"format": "tpsim-stack/1", ...}.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/json/field_finder.h"
#include "core/json/json_value.h"
#include "core/software/stack_spec.h"

namespace tpsim {

Result<StackSpec> read_stack(const std::filesystem::path& path);
Result<StackSpec> parse_stack(std::string_view text, const std::string& file);

std::string to_json(const StackSpec& stack);

std::string_view name_of(GradientReduction);

// The JSON schema of stack files.
JsonValue stack_schema();

// Returns the number of a key, such as "host.per_op"; empty if there is none. It points into
// `stack`.
std::optional<FoundNumber> number_at(StackSpec& stack, std::string_view path);

}  // namespace tpsim

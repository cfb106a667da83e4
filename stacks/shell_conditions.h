// Tests of shell scripts on strings and numbers: [ ... ], [[ ... ]], test.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stacks/shell_words.h"

namespace tpsim {

// The words with their quotes, "[" and "]" included. Nothing for what depends on more than
// variables: files, other programs.
std::optional<bool> shell_condition(const std::vector<std::string>& all, ShellVariables& variables);
// Of truths that may be unknown.
std::optional<bool> shell_and(std::optional<bool> a, std::optional<bool> b);
std::optional<bool> shell_or(std::optional<bool> a, std::optional<bool> b);

}  // namespace tpsim

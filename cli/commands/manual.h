// Shell completion and a manual page, generated from the tables of options.
#pragma once

#include <string>

#include "core/base/result.h"

namespace tpsim::cli {

// Returns the script for "bash", "zsh" or "fish"; other names are errors.
Result<std::string> completion_script(const std::string& shell);

// Returns all commands and options in man format.
std::string manual_page();

// Returns the text of `tpsim --version`: version, compiler and built-in optional parts, one per
// line.
std::string version_text();

}  // namespace tpsim::cli

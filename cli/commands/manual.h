// The command line described for other readers, from the tables of options: completion of shells,
// and a manual page.
#pragma once

#include <string>

#include "core/base/result.h"

namespace tpsim::cli {

// For "bash", "zsh" or "fish"; another name is an error.
Result<std::string> completion_script(const std::string& shell);

// All commands and options, in the format of man.
std::string manual_page();

// What `tpsim --version` says: version, compiler and which optional parts were built in, one to a
// line.
std::string version_text();

}  // namespace tpsim::cli

// What `tpsim --version` says.
#pragma once

#include <string>

namespace tpsim::cli {

// Version, compiler and which optional parts were built in, one to a line.
std::string version_text();

}  // namespace tpsim::cli

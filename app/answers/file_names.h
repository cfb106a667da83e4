// Names of measured files, for the sources of calibrated constants.
#pragma once

#include <string>
#include <vector>

namespace tpsim::app {

// Returns the names without folders: "a.log, b.log".
std::string file_names(const std::vector<std::string>& files);

}  // namespace tpsim::app

// python/tpsim_recipes, which is packed into the program, run by the user's Python.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

// What tpsim_recipes prints for these words of its command line: JSON. kMissing without python3.
Result<std::string> output_of_recipes(std::vector<std::string> words);

}  // namespace tpsim

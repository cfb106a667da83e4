// Other programs of this machine.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

// What the program `words[0]`, which PATH finds, prints when it is given the other words; no shell
// is asked, and what it says on stderr is dropped. kMissing where it is not here, kBug where it
// does not end by itself with 0.
Result<std::string> output_of_program(std::vector<std::string> words);

}  // namespace tpsim

// Other programs of this machine.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

// What the program `words[0]`, which PATH finds, prints when it is given the other words. There is
// no shell, and the program's stderr is dropped. kMissing if PATH has no such program, kBug if it
// does not end by itself with 0.
Result<std::string> output_of_program(std::vector<std::string> words);

}  // namespace tpsim

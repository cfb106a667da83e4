// Runs other programs of this machine.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

// Runs the program `words[0]` from PATH with the other words as arguments, without a shell. Returns
// its stdout and drops its stderr. Errors: kMissing if PATH has no such program, kBug if the exit
// status is not 0.
Result<std::string> output_of_program(std::vector<std::string> words);

}  // namespace tpsim

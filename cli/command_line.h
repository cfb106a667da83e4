// From argv to Arguments. The only user of CLI11: options come from the table in cli/options.h,
// and their texts are turned into values elsewhere (cli/values.h).
#pragma once

#include <string>
#include <variant>

#include "cli/options.h"
#include "core/result.h"

namespace tpsim::cli {

// --help and --version, and tpsim alone: what to print instead of working.
struct Printout {
  std::string text;
  bool is_prose = true;  // else the file of another program: a manual page
};

using CommandLine = std::variant<Arguments, Printout>;

// An unknown command or option, one that this command does not take, and a missing value are errors
// that name the nearest valid choice.
Result<CommandLine> parse_command_line(int argc, const char* const* argv);

}  // namespace tpsim::cli

// Main program from arguments to exit code, for every main() of tpsim. CLI11 and the table in
// cli/options/options.h convert argv to Arguments; cli/options/values.h converts the texts to
// values.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "cli/options/options.h"
#include "core/base/result.h"

namespace tpsim::cli {

// Text to print instead of running a command: --help, --version, and tpsim without arguments.
struct Printout {
  std::string text;
  bool is_prose = true;  // false: input of another program, such as a manual page
};

using CommandLine = std::variant<Arguments, Printout>;

// Parses the command line. An unknown command or option, an option of other commands, and a missing
// value are errors with the nearest valid choice.
Result<CommandLine> parse_command_line(int argc, const char* const* argv);

// Runs the command, or prints the requested text.
Status run_program(const CommandLine& line);

// Prints an error on stderr, wrapped at the terminal's width. Returns the exit code, even if
// printing fails.
int report(const Error& error);

// Returns the exit code of `work`. Exceptions are reported as errors (error_from).
int guarded(const std::function<int()>& work);

// Runs the command and reports its error, if any.
int run_and_report(const CommandLine& line);

}  // namespace tpsim::cli

// The program from what was typed to its exit code, for every main() of tpsim. From argv to
// Arguments it goes by CLI11 and the table in cli/options/options.h; their texts are turned into
// values elsewhere (cli/options/values.h).
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "cli/options/options.h"
#include "core/base/result.h"

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

// Runs the command, or prints what was asked for instead.
Status run_program(const CommandLine& line);

// Prints an error on stderr: one line, or several where a terminal is narrower. Its exit code,
// whether or not anybody can be told.
int report(const Error& error);

// The exit code of a program's work; an exception out of it is reported as what it is (error_from).
int guarded(const std::function<int()>& work);

// Runs the command and reports how it failed, if it did.
int run_and_report(const CommandLine& line);

}  // namespace tpsim::cli

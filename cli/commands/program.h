// Runs tpsim from command line to exit code, for every main(). The table in cli/options/options.h
// defines the options, and cli/options/values.h converts their texts to values.
#pragma once

#include <functional>
#include <variant>

#include "cli/commands/commands.h"
#include "cli/options/options.h"
#include "core/base/result.h"

namespace tpsim::cli {

// A command, or the text to print instead: --help, --version, and tpsim without arguments.
using CommandLine = std::variant<Arguments, Answer>;

// Parses the command line. Fails for an unknown command or option, an option of another command, or
// a missing value, and suggests the nearest valid choice.
Result<CommandLine> parse_command_line(int argc, const char* const* argv);

// Runs the command, or prints the requested text.
Status run_program(const CommandLine& line);

// Output of errors: text on stderr, or also JSON on stdout unless the command has printed its
// report there.
enum class ErrorOutput { kText, kTextAndJson };
// Returns kTextAndJson if the arguments contain --json.
ErrorOutput error_output(int argc, const char* const* argv);

// Prints an error on stderr, wrapped at the terminal's width. Returns the exit code, even if
// printing fails.
int report(const Error& error, ErrorOutput output = ErrorOutput::kText);

// Returns the exit code of `work`. Exceptions are reported as errors (error_from).
int guarded(const std::function<int()>& work);

// Runs the command and reports its error, if any.
int run_and_report(const CommandLine& line, ErrorOutput output = ErrorOutput::kText);

}  // namespace tpsim::cli

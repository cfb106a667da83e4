// The program from what was typed to its exit code, for every main() of tpsim.
#pragma once

#include <functional>

#include "cli/command_line.h"
#include "core/result.h"

namespace tpsim::cli {

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

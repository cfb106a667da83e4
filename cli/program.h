// The program from argv to its exit code, for every main() of tpsim.
#pragma once

#include "core/result.h"

namespace tpsim::cli {

// Parses the command line and runs the command.
Status run_program(int argc, const char* const* argv);

// Prints an error on stderr, on one line. Its exit code.
int report(const Error& error);

// Both; a broken invariant is reported as the bug it is.
int run_and_report(int argc, const char* const* argv);

}  // namespace tpsim::cli

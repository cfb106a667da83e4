// Executes tpsim-mpi in place of tpsim.
#pragma once

#include "cli/commands/program.h"
#include "core/base/result.h"
#include "ranks/launcher.h"

namespace tpsim::cli {

// Whether tpsim-mpi exists next to this program.
bool mpi_program_is_here();

// Replaces this process by tpsim-mpi, with the same arguments. On failure the first rank prints the
// reason, and the exit code is returned.
int run_as_mpi_rank(char* const* argv);

// Prints an error that occurs in every process of an MPI job only once, from the first process.
// Returns the exit code.
int report_once(const Error& error, ErrorOutput output = ErrorOutput::kText);

// Reports the error of a process that a launcher started but that cannot connect to the other
// processes. The first process prints the reason. Returns the exit code.
int refuse_lone_task(const LoneTask& task);

}  // namespace tpsim::cli

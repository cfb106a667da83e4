// Replaces tpsim by the MPI program, or runs work in a supervised child process.
#pragma once

#include <functional>
#include <string>

#include "core/base/result.h"
#include "ranks/launcher.h"

namespace tpsim::cli {

// Whether tpsim-mpi exists next to this program.
bool mpi_program_is_here();

// Replaces this process by tpsim-mpi, with the same arguments. Returns only on failure: the exit
// code. The first rank prints the reason.
int run_as_mpi_rank(char* const* argv);

// Prints an error that all processes of an MPI job have, on the first process only. Without
// launcher, prints it here. Returns the exit code.
int report_once(const Error& error);

// Refuses one of several processes that cannot connect. Returns the exit code; the first process
// prints the reason.
int refuse_lone_task(const LoneTask& task);

// Runs `work` in a child process and returns its exit code. A child killed by a signal, such as for
// lack of memory, is reported on stderr as `name`. The result is then 128 + signal number.
//
// SIGINT and SIGTERM are passed to the child, whose death is then not reported. If this process
// dies, the child is killed.
int supervised(const std::string& name, const std::function<int()>& work);

}  // namespace tpsim::cli

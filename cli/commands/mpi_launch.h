// From tpsim to the program that mpirun's processes run, and to a child that is watched.
#pragma once

#include <functional>
#include <string>

#include "core/base/result.h"
#include "ranks/launcher.h"

namespace tpsim::cli {

// Whether tpsim-mpi was built and lies beside this program.
bool mpi_program_is_here();

// Replaces this process by tpsim-mpi, which lies beside it, with the same arguments. Returns only
// when that cannot be done: the exit code, the reason being printed by the first rank.
int run_as_mpi_rank(char* const* argv);

// Prints an error that all processes of an MPI job meet, by the first of them; without a launcher,
// by this one. Its exit code.
int report_once(const Error& error);

// For a process of several that cannot know of each other: the exit code, the reason being printed
// by the first of them.
int refuse_lone_task(const LoneTask& task);

// Runs `work` in a child process and returns its exit code. A child that dies of a signal, killed
// by hand or for the memory it took, is reported on stderr as `name`: 128 + the signal's number.
// SIGINT and SIGTERM go to the child, which may die of them without a word; when this process dies,
// so does the child.
int supervised(const std::string& name, const std::function<int()>& work);

}  // namespace tpsim::cli

// Reads the environment variables of the launcher that started this process. Needs no MPI.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/base/result.h"

namespace tpsim {

// Returns the value of an environment variable; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

// Returns the number in a variable's value; nothing if it is not set or not a number.
std::optional<int> whole_number(const std::optional<std::string>& text);

// Environment variables with which a launcher sets rank and size.
struct LauncherVariables {
  const char* name;
  bool speaks_mpi;  // whether the launcher supports MPI; srun: with --mpi only
  const char* rank;
  const char* size;
  const char* local_rank;            // rank on this machine
  const char* local_size = nullptr;  // null if the launcher does not set it
};
// Returns the known launchers, in order of precedence. torchrun is first, because srun or mpirun
// may have started torchrun.
std::span<const LauncherVariables> launchers();

// Whether a launcher with MPI support (mpirun, srun --mpi) started this process.
bool started_by_mpi_launcher();

// Returns this process's rank from the launcher's variables; 0 without a launcher.
int rank_given_by_launcher();

// Returns the number of processes that the launcher started; 0 if unknown.
int size_given_by_launcher();

// A process that a launcher started without MPI support (srun without --mpi, or torchrun) together
// with other processes.
struct LoneTask {
  std::string launcher;
  int rank = 0;
  int size = 1;
};
// Returns the launcher, rank and size of such a process. Empty for the only process of a job, for
// the shell of a batch script, and under a launcher with MPI support.
std::optional<LoneTask> lone_task(const Environment& environment);

// Returns the timeout of collectives: TPSIM_TIMEOUT, default 600 seconds.
Result<std::chrono::seconds> collective_patience(const Environment& environment);

}  // namespace tpsim

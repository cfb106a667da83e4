// What the environment says about who started this process. Needs no MPI.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/base/result.h"

namespace tpsim {

// The value of an environment variable; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

// The number that a variable's value is; nothing when it is not set, or is none.
std::optional<int> whole_number(const std::optional<std::string>& text);

// The variables by which a launcher tells a process who it is.
struct LauncherVariables {
  const char* name;
  bool speaks_mpi;  // with srun: not by itself
  const char* rank;
  const char* size;
  const char* local_rank;            // on this machine
  const char* local_size = nullptr;  // where it says
};
// In the order in which they are asked: torchrun may itself have been started by srun or mpirun.
std::span<const LauncherVariables> launchers();

// Whether a launcher that speaks MPI (mpirun, srun --mpi) started this process.
bool started_by_mpi_launcher();

// This process's number among those that the launcher started; 0 without one.
int rank_given_by_launcher();

// How many processes it started; 0 where it does not say.
int size_given_by_launcher();

// A process of several that a launcher started without telling them of each other: srun without
// --mpi, or torchrun, which knows no MPI.
struct LoneTask {
  std::string launcher;
  int rank = 0;
  int size = 1;
};
// Nothing for the only process of a job, and for the shell of a batch script.
std::optional<LoneTask> lone_task(const Environment& environment);

// How long a rank waits for the others in a collective before it gives up: TPSIM_TIMEOUT, 600
// seconds when unset.
Result<std::chrono::seconds> collective_patience(const Environment& environment);

}  // namespace tpsim

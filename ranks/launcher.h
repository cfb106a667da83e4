// What the environment says about who started this process. Needs no MPI.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "core/result.h"

namespace tpsim {

// The value of an environment variable; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

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

// Ranks on the cores of CPUs. What they are is the program's choice at link time: threads of this
// process, or processes that mpirun started, of which this is one.
#pragma once

#include "cli/local_devices.h"

namespace tpsim::cli {

// Under mpirun between MPI's start and its end. kMissing when MPI and the launcher do not
// understand each other.
Result<RankStarter> cpu_ranks();

}  // namespace tpsim::cli

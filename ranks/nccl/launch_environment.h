// Rank and job of this process, from the variables of its launcher: torchrun, srun or mpirun.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"
#include "ranks/launcher.h"

namespace tpsim {

struct Launch {
  int rank = 0;
  int size = 1;
  int local_rank = 0;   // on this machine
  std::string address;  // of rank 0; empty if a folder is used
  std::string bind;     // address on which rank 0 listens: `address`, or TPSIM_BIND
  int port = 0;
  std::string token;       // secret of the job; connections without it are refused
  std::string folder;      // rendezvous folder, empty at the job's start; from TPSIM_RENDEZVOUS
  bool under_mpi = false;  // MPI reports failures and ends the job; from TPSIM_UNDER_MPI
};

// Returns nothing if no launcher started this process, or if it is the only one. Reads the
// variables of launchers(): torchrun, Slurm, Open MPI, MPICH and Intel MPI. The rendezvous address
// is MASTER_ADDR; by default the first node of a Slurm job, or this machine for a job on one
// machine. The port is TPSIM_PORT, or MASTER_PORT + 1, because torchrun listens on MASTER_PORT.
//
// The token is TPSIM_TOKEN. The default is derived from the launcher's job number. It keeps out
// other jobs, but not a user who knows the job number.
Result<std::optional<Launch>> launch_from(const Environment& environment);

// Returns the first host of a Slurm node list: "gpu[007-012,015],login1" -> "gpu007".
std::string first_host(const std::string& node_list);

}  // namespace tpsim

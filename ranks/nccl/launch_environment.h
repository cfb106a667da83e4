// Which rank of which job this process is, as its launcher says: torchrun, srun or mpirun.
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
  std::string address;  // of rank 0; empty when a folder is used
  std::string bind;     // what rank 0 listens on: the address, or TPSIM_BIND
  int port = 0;
  std::string token;       // of the job: who does not know it is no rank of it
  std::string folder;      // shared by all ranks, empty when the job begins; from TPSIM_RENDEZVOUS
  bool under_mpi = false;  // which reports failures and ends the job; from TPSIM_UNDER_MPI
};

// Nothing when no launcher started this process, or it started only this one. Reads the variables
// of launchers(): torchrun's, Slurm's, Open MPI's, MPICH's and Intel MPI's. Ranks meet at
// MASTER_ADDR (Slurm: its first node; one machine: itself) and the port after MASTER_PORT, which
// torchrun itself listens on, or at TPSIM_PORT.
//
// The token is TPSIM_TOKEN. Where it is not set it is made of the job's number at its launcher,
// which keeps other jobs out, but nobody who knows that number.
Result<std::optional<Launch>> launch_from(const Environment& environment);

// The first host of a Slurm node list: "gpu[007-012,015],login1" -> "gpu007".
std::string first_host(const std::string& node_list);

}  // namespace tpsim

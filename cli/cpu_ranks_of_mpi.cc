// Linked into tpsim-mpi in place of cpu_ranks_of_threads.cc.
#include "cli/cpu_ranks.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/mpi/mpi_world.h"

namespace tpsim {

RankStarter cpu_ranks() {
  const auto world = mpi_world();
  RankStarter ranks;
  ranks.started = world->size();
  ranks.speaks = world->rank() == 0;
  ranks.launch = "mpirun -n";
  ranks.run = [](int, const DeviceRankBody& body) -> Status {
    TPSIM_TRY(const auto device, CpuDevice::create());
    return body(*mpi_world(), *device);
  };
  return ranks;
}

}  // namespace tpsim

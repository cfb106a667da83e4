// cpu_ranks() with MPI processes. tpsim-mpi links this file in place of cpu_ranks_of_threads.cc.
#include <fmt/format.h>

#include "devices/local_devices.h"
#include "kernels/cpu/cpu_device.h"
#include "ranks/launcher.h"
#include "ranks/mpi/mpi_world.h"

namespace tpsim::app {

Result<RankStarter> cpu_ranks() {
  const auto world = mpi_world();
  if (const int told = size_given_by_launcher(); world->size() == 1 && told > 1) {
    return Error{
        ErrorKind::kMissing,
        fmt::format("{} processes were started, but MPI did not connect them", told), "",
        "this MPI library does not support the launcher: use the mpirun of the library, or "
        "srun with the --mpi plug-in that the library supports"};
  }
  RankStarter ranks;
  ranks.started = world->size();
  ranks.speaks = world->rank() == 0;
  ranks.launch = "start the ranks with mpirun -n";
  ranks.run = [](int, const DeviceRankBody& body) -> Status {
    TPSIM_TRY(const auto device, CpuDevice::create());
    return body(*mpi_world(), *device);
  };
  return ranks;
}

}  // namespace tpsim::app

#include "devices/local_devices.h"
#include "kernels/cpu/cpu_device.h"
#include "ranks/threads/thread_world.h"

namespace tpsim::app {

Result<RankStarter> cpu_ranks() {
  RankStarter ranks;
  ranks.run = [](int count, const DeviceRankBody& body) {
    return run_on_threads(count, [&](World& world) -> Status {
      TPSIM_TRY(const auto device, CpuDevice::create());
      return body(world, *device);
    });
  };
  return ranks;
}

}  // namespace tpsim::app

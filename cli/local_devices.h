// The devices of the machine at hand, and ranks that run on them.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "core/profile.h"
#include "core/result.h"
#include "kernels/world.h"
#include "profiler/load_meter.h"

namespace tpsim {

// What a rank does on its own device.
using DeviceRankBody = std::function<Status(World&, Device&)>;

struct LocalDevices {
  DeviceFacts facts;  // rates are left to a profile
  MachineFacts machine;
  // Runs that many ranks at the same time, each with a device of its own, and waits for all.
  std::function<Status(int ranks, const DeviceRankBody& body)> run;
  // For one thread.
  std::function<std::unique_ptr<LoadMeter>()> meter;
};

// "cpu" or "cuda". kMissing when this build or machine has no such device.
Result<LocalDevices> local_devices(std::string_view device);
Result<LocalDevices> cpu_devices();
Result<LocalDevices> cuda_devices();

}  // namespace tpsim

// Devices of this machine, and ranks that run on them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/free_memory.h"
#include "core/base/result.h"
#include "core/machine/profile.h"
#include "core/plan/plan.h"
#include "profiler/load_meter.h"
#include "ranks/world.h"

namespace tpsim::cli {

struct DeviceState {
  double mhz = 0, watts = 0, celsius = 0;
};

// Work of a rank on its own device.
using DeviceRankBody = std::function<Status(World&, Device&)>;

// Starts ranks. If a launcher started this process, the job's processes are the ranks, and this is
// one of them.
struct RankStarter {
  int started = 0;     // processes of the job; 0 if run() starts the requested number
  bool speaks = true;  // whether this process prints and writes files: only the first rank
  std::string launch;  // command prefix to start another number: "mpirun -n"
  std::function<Status(int ranks, const DeviceRankBody& body)> run;
};

struct LocalDevices {
  DeviceFacts facts;  // without rates, which a profile has
  MachineFacts machine;
  RankStarter ranks;
  // Memory that is free for tensors: of this machine for a CPU, from the driver for a GPU. The
  // device may be null on the CPU.
  std::function<FreeMemory(const Device* device)> free_memory;
  // For one thread.
  std::function<std::unique_ptr<LoadMeter>()> meter;
  Bytes cache;  // operands must be larger to be read from memory; 0: default of OpTimerSettings
  // Current clocks, power and temperature. Empty, or returns nothing, if unknown.
  std::function<std::optional<DeviceState>()> state;
  // Measures the memory overhead of using the device. `notes` gets values that could not be
  // determined, with reasons. May be empty.
  std::function<RuntimeFacts(Device& device, std::vector<std::string>& notes)> runtime;
};

// Returns the devices for "cpu" or "cuda". kMissing if this build or machine has none.
Result<LocalDevices> local_devices(std::string_view device);
Result<LocalDevices> cpu_devices();
Result<LocalDevices> cuda_devices();

// Ranks on CPU cores: threads of this process, or processes started by mpirun, as linked. MPI
// processes must call it between MPI's initialization and finalization. kMissing if MPI and the
// launcher are incompatible.
Result<RankStarter> cpu_ranks();

// Returns kBadInput with the plan's degrees if a launcher started another number of processes.
Status check_started(const RankStarter& starter, const Plan& plan);

// Runs the ranks concurrently, each with its own device. Returns when this process's ranks have
// finished. kBadInput if a launcher started another number.
Status run_ranks(const LocalDevices& devices, int ranks, const DeviceRankBody& body);

}  // namespace tpsim::cli

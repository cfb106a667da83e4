// Devices of this machine, and functions that run ranks on them.
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

namespace tpsim::app {

struct DeviceState {
  double mhz = 0, watts = 0, celsius = 0;
};

// Function that each rank executes, with its own device.
using DeviceRankBody = std::function<Status(World&, Device&)>;

// Starts ranks. If a launcher started this process, the ranks are the processes of its job, and
// run() executes only this process's rank.
struct RankStarter {
  int started = 0;     // number of processes of the launcher's job; 0 if run() starts the ranks
  bool speaks = true;  // this process prints and writes files; true for the first rank only
  std::string launch;  // hint before a number of processes: "start the ranks with mpirun -n"
  std::function<Status(int ranks, const DeviceRankBody& body)> run;
};

struct LocalDevices {
  DeviceFacts facts;  // without rates, which only a profile has
  MachineFacts machine;
  RankStarter ranks;
  // Returns the memory that is free for tensors: of this host for a CPU, from the driver for a GPU.
  // On a CPU the device may be null.
  std::function<FreeMemory(const Device* device)> free_memory;
  // Returns a meter for the load of the calling thread.
  std::function<std::unique_ptr<LoadMeter>()> meter;
  Bytes cache;  // cache size; 0: OpTimerSettings rotates its default number of bytes
  // Returns current clocks, power and temperature, or nothing if unknown. May be empty.
  std::function<std::optional<DeviceState>()> state;
  // Measures launch and copy times and the memory of the CUDA context. Adds reasons for values that
  // could not be measured to `notes`. Empty for CPUs.
  std::function<RuntimeFacts(Device& device, std::vector<std::string>& notes)> runtime;
};

// Returns the devices for "cpu" or "cuda". kMissing if this build or machine has none.
Result<LocalDevices> local_devices(std::string_view device);
Result<LocalDevices> cpu_devices();
Result<LocalDevices> cuda_devices();

// Returns the starter of CPU ranks: threads of this process, or in tpsim-mpi the processes that
// mpirun started. MPI must be initialized. kMissing if MPI and the launcher are incompatible.
Result<RankStarter> cpu_ranks();

// Returns kBadInput if a launcher started another number of processes than the plan has ranks.
Status check_started(const RankStarter& starter, const Plan& plan);

// Executes `body` concurrently on `ranks` ranks, each with its own device. Returns when the ranks
// of this process have finished. kBadInput if a launcher started another number of processes.
Status run_ranks(const LocalDevices& devices, int ranks, const DeviceRankBody& body);

// Returns an error if the device cannot run the plan.
Status check_runs_on(const Plan& plan, std::string_view device);

}  // namespace tpsim::app

// The devices of the machine at hand, and ranks that run on them.
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

// What a rank does on its own device.
using DeviceRankBody = std::function<Status(World&, Device&)>;

// Who starts ranks. Processes that a launcher started are the ranks, and this is one of them.
struct RankStarter {
  int started = 0;     // processes of the job; 0 where run() starts as many ranks as are wanted
  bool speaks = true;  // whether this process prints and writes files: the first rank's does
  std::string launch;  // how to start another number, which follows: "mpirun -n"
  std::function<Status(int ranks, const DeviceRankBody& body)> run;
};

struct LocalDevices {
  DeviceFacts facts;  // rates are left to a profile
  MachineFacts machine;
  RankStarter ranks;
  // Memory that tensors can still take: on the CPU from this machine, on a GPU from its driver. The
  // device may be null on the CPU.
  std::function<FreeMemory(const Device* device)> free_memory;
  // For one thread.
  std::function<std::unique_ptr<LoadMeter>()> meter;
  Bytes cache;  // what operands must exceed to come from memory; 0: as OpTimerSettings has it
  // Clocks, power and temperature at this moment; empty, or nothing, where nobody says.
  std::function<std::optional<DeviceState>()> state;
  // What using the device takes, `notes` being what could not be found out and why. May be empty.
  std::function<RuntimeFacts(Device& device, std::vector<std::string>& notes)> runtime;
};

// "cpu" or "cuda". kMissing when this build or machine has no such device.
Result<LocalDevices> local_devices(std::string_view device);
Result<LocalDevices> cpu_devices();
Result<LocalDevices> cuda_devices();

// Ranks on the cores of CPUs. What they are is the program's choice at link time: threads of this
// process, or processes that mpirun started, of which this is one: then between MPI's start and its
// end. kMissing when MPI and the launcher do not understand each other.
Result<RankStarter> cpu_ranks();

// kBadInput, naming the plan's degrees, when a launcher started another number of processes.
Status check_started(const RankStarter& starter, const Plan& plan);

// Runs that many ranks at the same time, each with a device of its own, and returns when those of
// this process have ended. kBadInput when a launcher started another number.
Status run_ranks(const LocalDevices& devices, int ranks, const DeviceRankBody& body);

}  // namespace tpsim::cli

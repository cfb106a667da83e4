// GPUs of this machine as devices of tpsim run, profile and validate.
#include <fmt/format.h>

#include "devices/local_devices.h"
#include "kernels/cuda/runtime/cuda_memory.h"
#include "kernels/cuda/runtime/gpu_facts.h"
#include "kernels/cuda/runtime/gpu_state.h"
#include "kernels/cuda/runtime/host_costs.h"
#include "ranks/meta/lone_world.h"
#include "ranks/nccl/nccl_world.h"

namespace tpsim::app {
namespace {

// Returns a starter for this process's rank of a launcher's job, or for a single rank without a
// launcher.
RankStarter gpu_ranks(const std::optional<Launch>& launch) {
  RankStarter ranks;
  ranks.started = launch ? launch->size : 1;
  ranks.speaks = !launch || launch->rank == 0;
  ranks.launch = "start one process per GPU with torchrun, or with srun or mpirun -n";
  ranks.run = [launch](int, const DeviceRankBody& body) -> Status {
    if (launch) return run_under_nccl(*launch, body);
    TPSIM_TRY(const auto device, CudaDevice::create());
    return run_alone([&](World& world) -> Status { return body(world, *device); });
  };
  return ranks;
}

FreeMemory free_on_gpu(const Device*) {
  const DriverMemory driver = driver_memory();
  return {Bytes(static_cast<double>(driver.total - driver.used)), "this GPU"};
}

std::optional<DeviceState> state_of_gpu() {
  static const Result<GpuWatch> watch = GpuWatch::open();
  if (!watch.ok()) return std::nullopt;
  const std::optional<GpuState> state = watch->state();
  if (!state) return std::nullopt;
  return DeviceState{state->mhz, state->watts, state->celsius};
}

RuntimeFacts runtime_of(Device& device, std::vector<std::string>& notes) {
  auto& gpu = dynamic_cast<CudaDevice&>(device);
  RuntimeFacts facts;
  facts.context = Bytes(static_cast<double>(gpu.used_bytes() - gpu.memory().reserved_bytes()));
  const HostCosts host = host_costs(gpu);
  facts.launch = Seconds(host.launch_s);
  facts.upload = BytesPerSecond(host.upload_bytes_per_s);
  facts.download = BytesPerSecond(host.download_bytes_per_s);
  if (const auto gap = measured_launch_gap(gpu); gap.ok()) {
    facts.launch_gap = Seconds(gap->gap_s);
    facts.empty_kernel = Seconds(gap->kernel_s);
  } else {
    notes.push_back("the gaps between kernels were not measured: " + to_string(gap.error()));
  }
  if (const auto watch = GpuWatch::open(); !watch.ok()) {
    notes.push_back("clocks, power and temperature cannot be read: " + to_string(watch.error()));
  }
  return facts;
}

}  // namespace

Result<LocalDevices> cuda_devices() {
  TPSIM_TRY(const std::optional<Launch> launch, launch_from(process_environment));
  const GpuCount count = visible_gpus();
  if (count.gpus == 0) {
    if (launch) let_first_speak(*launch);
    return no_gpu(count.why_none);
  }
  const GpuFacts gpu = gpu_facts();
  LocalDevices devices;
  devices.facts.name = gpu.name;
  devices.facts.source = "this machine";
  devices.facts.memory = Bytes(static_cast<double>(gpu.memory_bytes));
  devices.facts.processors = gpu.multiprocessors;
  devices.machine.description =
      fmt::format("{}, CUDA {}, driver {}", gpu.name, gpu.runtime_version, gpu.driver_version);
  devices.machine.devices = count.gpus;
  devices.ranks = gpu_ranks(launch);
  devices.free_memory = free_on_gpu;
  devices.meter = [] { return std::make_unique<OwnDeviceMeter>(); };
  devices.cache = Bytes(static_cast<double>(gpu.cache_bytes));
  devices.state = state_of_gpu;
  devices.runtime = runtime_of;
  return devices;
}

}  // namespace tpsim::app

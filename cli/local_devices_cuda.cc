// GPUs of this machine for tpsim profile, validate and run --rank.
#include <fmt/format.h>

#include "cli/local_devices.h"
#include "kernels/cuda/gpu_facts.h"
#include "kernels/lone_world.h"
#include "kernels/nccl/nccl_world.h"

namespace tpsim {
namespace {

// One rank in this process, or this process's rank of the job that a launcher started.
RankStarter gpu_ranks(const std::optional<Launch>& launch) {
  RankStarter ranks;
  ranks.started = launch ? launch->size : 1;
  ranks.speaks = !launch || launch->rank == 0;
  ranks.launch = "start one process per GPU with torchrun, or srun or mpirun -n";
  ranks.run = [launch](int, const DeviceRankBody& body) -> Status {
    if (launch) return run_under_nccl(*launch, body);
    TPSIM_TRY(const auto device, CudaDevice::create());
    return run_alone([&](World& world) -> Status { return body(world, *device); });
  };
  return ranks;
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
  devices.meter = [] { return std::make_unique<OwnDeviceMeter>(); };
  return devices;
}

}  // namespace tpsim

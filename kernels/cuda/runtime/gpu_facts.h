// What a profile says of a GPU besides the times of its ops.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/cuda/runtime/kernel_trace.h"

namespace tpsim {

struct GpuFacts {
  std::string name;
  int multiprocessors = 0;
  int capability_major = 0, capability_minor = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t cache_bytes = 0;  // L2
  int runtime_version = 0, driver_version = 0;
};
// Of the GPU that this process uses.
GpuFacts gpu_facts();

// What the host pays: seconds until an op has been issued, and rates of copies of 64 MiB between
// page-locked memory and the GPU. Waits for the device.
struct HostCosts {
  double launch_s = 0;
  double upload_bytes_per_s = 0;
  double download_bytes_per_s = 0;
};
HostCosts host_costs(CudaDevice& device);

// The kernels of many ops that do next to nothing, issued ahead of the device. kMissing without
// CUPTI.
Result<LaunchGap> measured_launch_gap(CudaDevice& device);

}  // namespace tpsim

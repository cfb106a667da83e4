// What a profile says of the host and its link to the GPU.
#pragma once

#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/cuda/runtime/kernel_trace.h"

namespace tpsim {

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

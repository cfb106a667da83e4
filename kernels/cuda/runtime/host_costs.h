// Measurements of the host and of its link to the GPU, for a profile.
#pragma once

#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/cuda/runtime/kernel_trace.h"

namespace tpsim {

// Host costs: seconds to issue an op, and bandwidths of 64 MiB copies between page-locked memory
// and the GPU. Waits for the device.
struct HostCosts {
  double launch_s = 0;
  double upload_bytes_per_s = 0;
  double download_bytes_per_s = 0;
};
HostCosts host_costs(CudaDevice& device);

// Measures the kernels of many tiny ops and the gaps between them. The ops are issued before the
// device starts the first one. kMissing without CUPTI.
Result<LaunchGap> measured_launch_gap(CudaDevice& device);

}  // namespace tpsim

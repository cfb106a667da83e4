// Start and end of kernels on the GPU's clock, recorded by CUPTI. Excludes the overhead of event
// marks, and separates kernels from the gaps between them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/result.h"
#include "kernels/cuda/runtime/cuda_device.h"

namespace tpsim {

struct KernelSpan {
  std::uint64_t begin_ns = 0, end_ns = 0;
};

// Returns the kernels that `work` issued, in order of their start. Waits for the device. kMissing
// if CUPTI is not installed or may not record (another profiler runs, or the build lacks CUPTI).
Result<std::vector<KernelSpan>> traced_kernels(CudaDevice& device,
                                               const std::function<void()>& work);

// Medians over consecutive kernels, in seconds; zeros for fewer than two.
struct LaunchGap {
  double kernel_s = 0;
  double gap_s = 0;  // from the end of a kernel to the start of the next, at least 0
};
LaunchGap launch_gap_of(const std::vector<KernelSpan>& kernels);

}  // namespace tpsim

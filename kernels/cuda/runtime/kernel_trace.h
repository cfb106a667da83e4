// When kernels began and ended on the GPU's own clock, as CUPTI records it: without the time that a
// mark takes, and with the gaps between kernels apart from them.
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

// Kernels of what `work` issued, in the order in which they began. Waits for the device. kMissing
// when CUPTI is not here or may not record (another profiler is at work, or the build lacks it).
Result<std::vector<KernelSpan>> traced_kernels(CudaDevice& device,
                                               const std::function<void()>& work);

// Medians over consecutive kernels, in seconds; zeros for fewer than two.
struct LaunchGap {
  double kernel_s = 0;
  double gap_s = 0;  // from one's end to the next one's begin, at least 0
};
LaunchGap launch_gap_of(const std::vector<KernelSpan>& kernels);

}  // namespace tpsim

#include <utility>

#include "core/base/median.h"
#include "kernels/cuda/runtime/kernel_trace.h"

namespace tpsim {

LaunchGap launch_gap_of(const std::vector<KernelSpan>& kernels) {
  if (kernels.size() < 2) return {};
  constexpr double kNanosecond = 1e-9;
  std::vector<double> lengths, gaps;
  for (std::size_t i = 1; i < kernels.size(); ++i) {
    const KernelSpan &before = kernels[i - 1], &one = kernels[i];
    lengths.push_back(kNanosecond * static_cast<double>(one.end_ns - one.begin_ns));
    gaps.push_back(one.begin_ns > before.end_ns
                       ? kNanosecond * static_cast<double>(one.begin_ns - before.end_ns)
                       : 0.0);
  }
  return {upper_median(std::move(lengths)), upper_median(std::move(gaps))};
}

}  // namespace tpsim

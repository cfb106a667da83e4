#include "core/base/check.h"
#include "kernels/cuda/attention/warpgroups.h"

namespace tpsim {

bool has_warpgroup_kernels() { return false; }

void flash_forward_by_warpgroups(const FlashForward&, const CudaState&) {
  TPSIM_CHECK(has_warpgroup_kernels(), "a build with kernels of sm_90a");
}
void flash_backward_by_warpgroups(const FlashBackward&, const FlashMemory&, std::byte*,
                                  const CudaState&) {
  TPSIM_CHECK(has_warpgroup_kernels(), "a build with kernels of sm_90a");
}

}  // namespace tpsim

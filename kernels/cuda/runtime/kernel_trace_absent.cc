// For builds without CUPTI's header.
#include "kernels/cuda/runtime/kernel_trace.h"

namespace tpsim {

Result<std::vector<KernelSpan>> traced_kernels(CudaDevice&, const std::function<void()>&) {
  return Error{ErrorKind::kMissing, "this tpsim was built without CUPTI's header", "",
               "install the CUDA toolkit's CUPTI, configure and build again"};
}

}  // namespace tpsim

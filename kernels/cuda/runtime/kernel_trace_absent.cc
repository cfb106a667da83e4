// Replaces kernel_trace.cc in builds without CUPTI's header: all functions return an error.
#include "kernels/cuda/runtime/kernel_trace.h"

namespace tpsim {

Result<std::vector<KernelSpan>> traced_kernels(CudaDevice&, const std::function<void()>&) {
  return Error{ErrorKind::kMissing, "this tpsim was built without CUPTI's header", "",
               "install CUPTI of the CUDA toolkit, then configure and build tpsim again"};
}

}  // namespace tpsim

#include "kernels/cuda/runtime/cuda_memory.h"

#include "kernels/cuda/runtime/cuda_check.h"

namespace tpsim {

void* CudaSegments::acquire_segment(std::int64_t bytes) {
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, static_cast<std::size_t>(bytes));
  if (error == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());  // clears the error, which the next launch would report
    return nullptr;
  }
  check_cuda(error, "cudaMalloc");
  return data;
}

// cudaFree waits for the device, so that no kernel still reads the segment. Errors are ignored,
// because this function also runs while the exception of a broken device propagates.
void CudaSegments::release_segment(void* data, std::int64_t) { static_cast<void>(cudaFree(data)); }

DriverMemory driver_memory() {
  std::size_t unused = 0, total = 0;
  check_cuda(cudaMemGetInfo(&unused, &total), "cudaMemGetInfo");
  return {static_cast<std::int64_t>(total - unused), static_cast<std::int64_t>(total)};
}

}  // namespace tpsim

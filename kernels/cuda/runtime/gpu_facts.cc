#include "kernels/cuda/runtime/gpu_facts.h"

#include "kernels/cuda/runtime/cuda_check.h"

namespace tpsim {

GpuFacts gpu_facts() {
  int index = 0;
  check_cuda(cudaGetDevice(&index), "cudaGetDevice");
  cudaDeviceProp gpu{};
  check_cuda(cudaGetDeviceProperties(&gpu, index), "cudaGetDeviceProperties");
  GpuFacts facts{gpu.name,
                 gpu.multiProcessorCount,
                 gpu.major,
                 gpu.minor,
                 static_cast<std::int64_t>(gpu.totalGlobalMem),
                 gpu.l2CacheSize,
                 0,
                 0};
  check_cuda(cudaRuntimeGetVersion(&facts.runtime_version), "cudaRuntimeGetVersion");
  check_cuda(cudaDriverGetVersion(&facts.driver_version), "cudaDriverGetVersion");
  return facts;
}

}  // namespace tpsim

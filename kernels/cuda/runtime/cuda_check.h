// check_cuda() wraps every CUDA runtime call and throws on failure. A failure means a broken device
// or an invalid kernel launch, so the exception ends the rank.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>

namespace tpsim {

class CudaFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail_cuda(cudaError_t error, const char* what);

inline void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) [[unlikely]]
    fail_cuda(error, what);
}

}  // namespace tpsim

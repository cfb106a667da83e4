// Every call of the CUDA runtime goes through check_cuda. A failure here is no expected one: the
// device broke, or a kernel was launched wrongly. It is thrown and ends the rank.
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

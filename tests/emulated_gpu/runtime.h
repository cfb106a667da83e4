// Shared by the sources of the CUDA runtime on the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace tpsim::emulated {

// Stores an error for cudaGetLastError() and returns it.
cudaError_t noted(cudaError_t error);

std::size_t total_memory();  // of the GPU, in bytes

}  // namespace tpsim::emulated

// Shared by the sources of the CUDA runtime on the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace tpsim::emulated {

// Returns the error, and keeps it for cudaGetLastError().
cudaError_t noted(cudaError_t error);

std::size_t total_memory();  // bytes of the GPU

}  // namespace tpsim::emulated

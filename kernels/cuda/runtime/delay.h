// A pause on a stream, in which the host issues work ahead of the device.
#pragma once

#include <cuda_runtime_api.h>

namespace tpsim {

// What follows on the stream begins about so much later, 10 s at most. `blocks` of `threads` occupy
// multiprocessors meanwhile, as a collective's do.
void delay_stream(double seconds, cudaStream_t stream, unsigned blocks = 1, unsigned threads = 1);

// What CUDA says to starting a kernel of this build on the GPU at hand.
cudaError_t can_start_kernels();

}  // namespace tpsim

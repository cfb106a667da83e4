// Delays a stream, so that the host can issue work before the device starts it.
#pragma once

#include <cuda_runtime_api.h>

namespace tpsim {

// Delays later work on the stream by about `seconds`, at most 10 s. Meanwhile `blocks` blocks of
// `threads` threads occupy SMs, like the kernel of a collective.
void delay_stream(double seconds, cudaStream_t stream, unsigned blocks = 1, unsigned threads = 1);

// Returns CUDA's error code for launching a kernel of this build on the current GPU.
cudaError_t can_start_kernels();

}  // namespace tpsim

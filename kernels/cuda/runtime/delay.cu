// A kernel that waits for a time.
#include <algorithm>

#include "kernels/cuda/runtime/delay.h"
#include "kernels/cuda/tiles/ptx.cuh"

namespace tpsim {
namespace {

// Waits until the global clock has advanced by `nanoseconds`. The number of naps is limited too, in
// case the clock does not advance.
__global__ void __launch_bounds__(1024) delay_kernel(std::uint64_t nanoseconds) {
  constexpr unsigned kNap = 500;
  const std::uint64_t begin = now_in_ns();
  for (std::uint64_t nap = 0; nap < nanoseconds / 50; ++nap) {
    if (now_in_ns() - begin >= nanoseconds) return;
    __nanosleep(kNap);
  }
}

}  // namespace

cudaError_t can_start_kernels() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(delay_kernel));
}

void delay_stream(double seconds, cudaStream_t stream, unsigned blocks, unsigned threads) {
  constexpr double kMost = 10;
  const auto nanoseconds = static_cast<std::uint64_t>(std::clamp(seconds, 0.0, kMost) * 1e9);
  if (nanoseconds > 0) delay_kernel<<<blocks, threads, 0, stream>>>(nanoseconds);
}

}  // namespace tpsim

// kernel<<<blocks, threads, bytes, stream>>>(arguments...) becomes
// on_gpu(kernel, Launch(blocks, threads, bytes, stream))(arguments...).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/emulated_gpu/thread_block.h"

namespace tpsim::emulated {

struct Launch {
  Launch(dim3 blocks, dim3 threads, std::size_t shared_bytes = 0, cudaStream_t where = nullptr)
      : grid{blocks, threads, shared_bytes}, stream(where) {}
  Grid grid;
  cudaStream_t stream;
};

// Counts GPU memory of a library as used; negative to free it.
void take_memory(std::ptrdiff_t bytes);

// Queues the grid on the stream. An invalid launch sets the error of cudaGetLastError().
void start(const Launch& launch, std::function<void()> thread);

template <class Kernel>
auto on_gpu(Kernel kernel, const Launch& launch) {
  return [kernel, launch]<class... A>(A&&... arguments) {
    start(launch, [kernel, kept = std::tuple<std::decay_t<A>...>(std::forward<A>(arguments)...)] {
      std::apply(kernel, kept);
    });
  };
}

}  // namespace tpsim::emulated

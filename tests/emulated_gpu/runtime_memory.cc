// Memory of the CUDA runtime on the host: device and pinned allocations, and copies.
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "tests/emulated_gpu/counts.h"
#include "tests/emulated_gpu/launch.h"
#include "tests/emulated_gpu/runtime.h"
#include "tests/emulated_gpu/stream.h"

namespace tpsim::emulated {
namespace {

constexpr std::size_t kMemory = std::size_t{8} << 30, kMemoryOfIdle = std::size_t{141} << 30;
constexpr std::size_t kContext = std::size_t{100} << 20;  // memory of the driver itself

struct Memory {
  std::map<const std::byte*, std::size_t> on_gpu, pinned;
  std::size_t used = 0;
};
Memory& memory() {
  static Memory all;
  return all;
}

// Initialized to all ones, so that uninitialized values are NaN; zeros if the GPU is idle.
void* memory_of_gpu(std::size_t bytes) {
  if (!works()) {
    void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data == MAP_FAILED ? nullptr : data;
  }
  constexpr std::size_t kAlignment = 512;
  void* const data =
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (data != nullptr) std::memset(data, 0xff, bytes);
  return data;
}

void free_memory_of_gpu(void* data, std::size_t bytes) {
  if (works()) {
    std::free(data);
  } else {
    munmap(data, bytes);
  }
}

bool holds(const std::map<const std::byte*, std::size_t>& pieces, const void* data,
           std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(data);
  const auto after = pieces.upper_bound(begin);
  if (after == pieces.begin()) return false;
  const auto& [piece, size] = *std::prev(after);
  return begin + bytes <= piece + size;
}

}  // namespace

std::size_t total_memory() { return works() ? kMemory : kMemoryOfIdle; }

void take_memory(std::ptrdiff_t bytes) { memory().used += static_cast<std::size_t>(bytes); }

}  // namespace tpsim::emulated

using namespace tpsim::emulated;

extern "C" {

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  const auto lock = at_work();
  *data = nullptr;
  if (bytes > total_memory() - kContext - memory().used) return noted(cudaErrorMemoryAllocation);
  *data = memory_of_gpu(bytes);
  if (*data == nullptr) return noted(cudaErrorMemoryAllocation);
  memory().on_gpu[static_cast<const std::byte*>(*data)] = bytes;
  memory().used += bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  const auto lock = at_work();
  if (data == nullptr) return cudaSuccess;
  finish_all();
  const auto piece = memory().on_gpu.find(static_cast<const std::byte*>(data));
  if (piece == memory().on_gpu.end()) return noted(cudaErrorInvalidValue);
  memory().used -= piece->second;
  free_memory_of_gpu(data, piece->second);
  memory().on_gpu.erase(piece);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
  const auto lock = at_work();
  *data = std::malloc(bytes);
  if (*data == nullptr) return noted(cudaErrorMemoryAllocation);
  memory().pinned[static_cast<const std::byte*>(*data)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data) {
  const auto lock = at_work();
  finish_all();
  if (memory().pinned.erase(static_cast<const std::byte*>(data)) == 0) {
    return noted(cudaErrorInvalidValue);
  }
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* unused, std::size_t* total) {
  const auto lock = at_work();
  *total = total_memory();
  *unused = total_memory() - kContext - memory().used;
  return cudaSuccess;
}

// Pinned memory is read when the copy runs, other host memory before this function returns.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const auto lock = at_work();
  count(&Counts::copies);
  const bool from_gpu = holds(memory().on_gpu, from, bytes),
             to_gpu = holds(memory().on_gpu, to, bytes);
  const bool needs_from = kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDeviceToHost;
  const bool needs_to = kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyHostToDevice;
  if (kind != cudaMemcpyDefault && (needs_from != from_gpu || needs_to != to_gpu)) {
    return noted(cudaErrorInvalidValue);
  }
  if (from_gpu || holds(memory().pinned, from, bytes)) {
    enqueue(stream, [=] {
      std::memmove(to, from, bytes);
      return true;
    });
    return cudaSuccess;
  }
  const auto* const begin = static_cast<const std::byte*>(from);
  enqueue(stream, [to, staged = std::vector<std::byte>(begin, begin + bytes)] {
    std::copy(staged.begin(), staged.end(), static_cast<std::byte*>(to));
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const auto lock = at_work();
  if (!holds(memory().on_gpu, to, bytes)) return noted(cudaErrorInvalidValue);
  count(&Counts::copies);
  enqueue(stream, [=] {
    std::memset(to, value, bytes);
    return true;
  });
  return cudaSuccess;
}

}  // extern "C"

#include "kernels/cuda/pinned_ring.h"

#include <cstring>

#include "kernels/cuda/cuda_check.h"

namespace tpsim {

PinnedRing::~PinnedRing() {
  for (const cudaEvent_t event : done_) static_cast<void>(cudaEventDestroy(event));
  if (memory_ != nullptr) static_cast<void>(cudaFreeHost(memory_));
}

void PinnedRing::upload(std::span<const std::byte> from, void* to, cudaStream_t stream) {
  if (memory_ == nullptr) {
    void* memory = nullptr;
    check_cuda(cudaMallocHost(&memory, kPlaces * kPlaceBytes), "cudaMallocHost");
    memory_ = static_cast<std::byte*>(memory);
  }
  if (next_ == done_.size()) {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    done_.push_back(event);
  } else {
    check_cuda(cudaEventSynchronize(done_[next_]), "an upload");
  }
  std::byte* const place = memory_ + next_ * kPlaceBytes;
  std::memcpy(place, from.data(), from.size());
  check_cuda(cudaMemcpyAsync(to, place, from.size(), cudaMemcpyHostToDevice, stream), "upload");
  check_cuda(cudaEventRecord(done_[next_], stream), "cudaEventRecord");
  next_ = (next_ + 1) % kPlaces;
}

}  // namespace tpsim

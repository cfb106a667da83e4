// Page-locked memory that small uploads pass through, so that they need not wait for what the
// device is doing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <vector>

namespace tpsim {

class PinnedRing {
 public:
  static constexpr std::size_t kPlaces = 32;
  static constexpr std::size_t kPlaceBytes = 256 << 10;

  PinnedRing() = default;
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  // Issues the copy and returns, `from` being read. At most kPlaceBytes; waits only when the device
  // is kPlaces uploads behind.
  void upload(std::span<const std::byte> from, void* to, cudaStream_t stream);

 private:
  std::byte* memory_ = nullptr;
  std::vector<cudaEvent_t> done_;  // of each place that has been used
  std::size_t next_ = 0;
};

}  // namespace tpsim

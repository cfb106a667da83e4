// The memory of one GPU: a BlockCache over cudaMalloc.
#pragma once

#include "kernels/block_cache.h"

namespace tpsim {

class CudaSegments final : public SegmentSource {
 public:
  void* acquire_segment(std::int64_t bytes) override;
  void release_segment(void* data, std::int64_t bytes) override;
};

// What the driver says is in use on the current GPU, by everyone, and what there is.
struct DriverMemory {
  std::int64_t used = 0;
  std::int64_t total = 0;
};
DriverMemory driver_memory();

}  // namespace tpsim

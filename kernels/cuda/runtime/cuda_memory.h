// The memory of one GPU: a BlockCache over cudaMalloc.
#pragma once

#include "kernels/block_cache.h"

namespace tpsim {

class CudaSegments final : public SegmentSource {
 public:
  void* acquire_segment(std::int64_t bytes) override;
  void release_segment(void* data, std::int64_t bytes) override;
};

// Memory of the current GPU in bytes, as reported by the driver: in use by all processes, and
// total.
struct DriverMemory {
  std::int64_t used = 0;
  std::int64_t total = 0;
};
DriverMemory driver_memory();

}  // namespace tpsim

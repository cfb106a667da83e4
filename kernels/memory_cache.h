// Cache of freed host memory for the CPU device. A training step allocates the same sizes
// repeatedly, and page faults of new memory take longer than most ops.
//
// Memory comes from a SegmentSource. A trace of allocations can therefore be replayed to compute
// the memory of a run before it starts.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kernels/block_cache.h"

namespace tpsim {

class MemoryCache {
 public:
  explicit MemoryCache(SegmentSource& source) : source_(source) {}
  ~MemoryCache();
  MemoryCache(const MemoryCache&) = delete;
  MemoryCache& operator=(const MemoryCache&) = delete;

  // Returns at least `bytes` bytes, aligned to kBlockAlignment; null if the source has no more.
  void* acquire(std::int64_t bytes);
  // Frees memory; `bytes` must be the value passed to acquire(). Empties the cache if used and
  // cached memory together exceed twice the peak of used memory.
  void give_back(void* data, std::int64_t bytes);

  // Peak of used and cached memory together.
  std::int64_t peak_reserved_bytes() const { return peak_reserved_; }

 private:
  void release_kept();

  SegmentSource& source_;
  std::map<std::int64_t, std::vector<void*>> kept_;  // by rounded size
  std::int64_t kept_bytes_ = 0;
  std::int64_t used_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
  std::int64_t peak_reserved_ = 0;
};

}  // namespace tpsim

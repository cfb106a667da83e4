// Host memory that the CPU device keeps when a tensor is freed: a training step asks for the same
// sizes again and again, and fresh pages cost more than most ops do.
//
// This class takes memory from a SegmentSource, so the same decisions can be replayed from a trace
// of allocations: the memory that a run takes is known before it starts.
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

  // At least `bytes`, aligned to kBlockAlignment; null when the source has no more.
  void* acquire(std::int64_t bytes);
  // `bytes` as in acquire(). Used and kept memory together never exceed twice the peak of the used.
  void give_back(void* data, std::int64_t bytes);

  // Used and kept memory together, at most so far.
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

// Host memory that is kept when it is given back: a training step asks for the same sizes again and
// again, and fresh pages cost more than most ops do.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace tpsim {

class MemoryCache {
 public:
  MemoryCache() = default;
  ~MemoryCache();
  MemoryCache(const MemoryCache&) = delete;
  MemoryCache& operator=(const MemoryCache&) = delete;

  // At least `bytes`, aligned to 256; null when the system has no more.
  void* acquire(std::int64_t bytes);
  // `bytes` as in acquire(). Used and kept together never exceed twice the peak of the used.
  void give_back(void* data, std::int64_t bytes);

 private:
  void release_kept();

  std::map<std::int64_t, std::vector<void*>> kept_;  // by rounded size
  std::int64_t kept_bytes_ = 0;
  std::int64_t used_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

}  // namespace tpsim

#include "kernels/memory_cache.h"

#include <algorithm>
#include <bit>

namespace tpsim {
namespace {

// Rounds a size up to a multiple of p / 8, where p is the largest power of two up to the size. A
// freed block can then be reused for similar sizes.
std::int64_t rounded(std::int64_t bytes) {
  const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1));
  const auto step = std::max(kBlockAlignment, static_cast<std::int64_t>(std::bit_floor(size) / 8));
  return (static_cast<std::int64_t>(size) + step - 1) / step * step;
}

}  // namespace

MemoryCache::~MemoryCache() { release_kept(); }

void* MemoryCache::acquire(std::int64_t bytes) {
  const std::int64_t size = rounded(bytes);
  void* data = nullptr;
  if (const auto found = kept_.find(size); found != kept_.end() && !found->second.empty()) {
    data = found->second.back();
    found->second.pop_back();
    kept_bytes_ -= size;
  } else {
    data = source_.acquire_segment(size);
    if (data == nullptr) {
      release_kept();
      data = source_.acquire_segment(size);
    }
    if (data == nullptr) return nullptr;
  }
  used_bytes_ += size;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  peak_reserved_ = std::max(peak_reserved_, used_bytes_ + kept_bytes_);
  return data;
}

void MemoryCache::give_back(void* data, std::int64_t bytes) {
  const std::int64_t size = rounded(bytes);
  used_bytes_ -= size;
  kept_[size].push_back(data);
  kept_bytes_ += size;
  if (used_bytes_ + kept_bytes_ > 2 * peak_bytes_) release_kept();
}

void MemoryCache::release_kept() {
  for (auto& [size, blocks] : kept_) {
    for (void* data : blocks) source_.release_segment(data, size);
  }
  kept_.clear();
  kept_bytes_ = 0;
}

}  // namespace tpsim

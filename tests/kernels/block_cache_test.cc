// The caching allocator for device memory, on segments that are only counted.
#include "kernels/block_cache.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace tpsim {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// Addresses without memory; at most `limit` bytes.
class CountedSegments final : public SegmentSource {
 public:
  explicit CountedSegments(std::int64_t limit) : limit_(limit) {}

  void* acquire_segment(std::int64_t bytes) override {
    if (total + bytes > limit_) return nullptr;
    total += bytes;
    // Segments may be adjacent or far apart; blocks must not span them in either case.
    const std::uintptr_t address = next_;
    next_ += static_cast<std::uintptr_t>(bytes);
    return reinterpret_cast<void*>(address);
  }
  void release_segment(void*, std::int64_t bytes) override { total -= bytes; }

  std::int64_t total = 0;

 private:
  std::int64_t limit_;
  std::uintptr_t next_ = std::uintptr_t{1} << 32;
};

std::uintptr_t address(void* data) { return reinterpret_cast<std::uintptr_t>(data); }

}  // namespace

TEST_CASE("blocks never overlap, stay aligned, and are all freed", "[block_cache]") {
  CountedSegments source(4096 * kMiB);
  BlockCache cache(source);
  std::mt19937 random(1);
  std::map<std::uintptr_t, std::int64_t> held;
  for (int step = 0; step < 4000; ++step) {
    if (held.size() < 40 || random() % 2 == 0) {
      const std::int64_t bytes = random() % 4 == 0 ? random() % (30 * kMiB) : random() % 5000;
      void* data = cache.acquire(bytes);
      REQUIRE(data != nullptr);
      REQUIRE(address(data) % kBlockAlignment == 0);
      const auto next = held.lower_bound(address(data));
      const std::uintptr_t end =
          address(data) + static_cast<std::uintptr_t>(BlockCache::block_size(bytes));
      if (next != held.end()) REQUIRE(end <= next->first);
      if (next != held.begin()) {
        const auto& [begin, size] = *std::prev(next);
        REQUIRE(begin + static_cast<std::uintptr_t>(size) <= address(data));
      }
      held.emplace(address(data), BlockCache::block_size(bytes));
    } else {
      const auto any = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      cache.give_back(reinterpret_cast<void*>(any->first));
      held.erase(any);
    }
    std::int64_t used = 0;
    for (const auto& [begin, size] : held) used += size;
    REQUIRE(cache.used_bytes() == used);
    REQUIRE(cache.reserved_bytes() == source.total);
    REQUIRE(cache.used_bytes() <= cache.reserved_bytes());
  }
  for (const auto& [begin, size] : held) cache.give_back(reinterpret_cast<void*>(begin));
  CHECK(cache.used_bytes() == 0);
  cache.release_free_segments();
  CHECK(cache.reserved_bytes() == 0);
  CHECK(source.total == 0);
}

TEST_CASE("a step that repeats reserves no memory after its first run", "[block_cache]") {
  CountedSegments source(4096 * kMiB);
  BlockCache cache(source);
  std::int64_t reserved = 0;
  for (int step = 0; step < 3; ++step) {
    std::vector<void*> blocks;
    for (const std::int64_t mib : {1, 64, 7, 300, 64, 2}) {
      blocks.push_back(cache.acquire(mib * kMiB));
    }
    for (void* block : blocks) cache.give_back(block);
    if (step == 0) reserved = cache.reserved_bytes();
    CHECK(cache.reserved_bytes() == reserved);
  }
}

TEST_CASE("free segments are released before a request is refused", "[block_cache]") {
  CountedSegments source(100 * kMiB);
  BlockCache cache(source);
  cache.give_back(cache.acquire(60 * kMiB));
  void* larger = cache.acquire(90 * kMiB);
  CHECK(larger != nullptr);
  CHECK(cache.acquire(20 * kMiB) == nullptr);
  CHECK(cache.used_bytes() == 90 * kMiB);
  cache.give_back(larger);
}

}  // namespace tpsim

// Device memory that is cut from large segments and kept when it is given back.
//
// A request is rounded up to kBlockAlignment and takes the smallest free block that holds it; what
// is left over stays free, and neighbours that are both free become one. Only when no block fits is
// a segment asked for. This class holds no memory and calls no driver, so the same decisions can be
// replayed from a trace of allocations: what a GPU would reserve is known without one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace tpsim {

inline constexpr std::int64_t kBlockAlignment = 256;

// Where segments come from: cudaMalloc, the heap, or a counter.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // Null when there is no memory left. Aligned to kBlockAlignment; never adjacent in meaning:
  // blocks do not span segments.
  virtual void* acquire_segment(std::int64_t bytes) = 0;
  virtual void release_segment(void* data, std::int64_t bytes) = 0;
};

class BlockCache {
 public:
  explicit BlockCache(SegmentSource& source) : source_(source) {}
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Null when the source has no more, after all wholly free segments went back to it.
  void* acquire(std::int64_t bytes);
  // `data` as acquire() gave it.
  void give_back(void* data);
  // Returns wholly free segments to the source.
  void release_free_segments();

  // Rounded sizes of what is out, and sizes of all segments; now and at most.
  std::int64_t used_bytes() const { return used_; }
  std::int64_t peak_used_bytes() const { return peak_used_; }
  std::int64_t reserved_bytes() const { return reserved_; }
  std::int64_t peak_reserved_bytes() const { return peak_reserved_; }
  // How often segments went back to the source: what was cut from them may be gone.
  std::int64_t releases() const { return releases_; }

  // What acquire() takes from a segment, and the segment it would ask for.
  static std::int64_t block_size(std::int64_t bytes);
  static std::int64_t segment_size(std::int64_t block);

 private:
  struct Block {
    std::int64_t bytes = 0;
    std::byte* segment = nullptr;
    bool is_free = false;
  };
  using Blocks = std::map<std::byte*, Block>;
  using FreeBlock = std::pair<std::int64_t, std::byte*>;  // by size, then by address

  Blocks::iterator grown(std::int64_t block);
  void* cut(Blocks::iterator from, std::int64_t bytes);
  Blocks::iterator merged_with_next(Blocks::iterator block);

  SegmentSource& source_;
  Blocks blocks_;
  std::set<FreeBlock> free_;
  std::map<std::byte*, std::int64_t> segments_;
  std::int64_t used_ = 0, peak_used_ = 0, reserved_ = 0, peak_reserved_ = 0;
  std::int64_t releases_ = 0;
};

}  // namespace tpsim

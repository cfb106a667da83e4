// A caching allocator: cuts blocks from large segments of device memory and keeps freed blocks for
// later requests.
//
// A request is rounded up to kBlockAlignment and takes the smallest free block that holds it. The
// rest stays free, and adjacent free blocks merge. A new segment is acquired only if no block fits.
// The class holds no memory and calls no driver. Traces of allocations can therefore be replayed to
// compute the memory that a GPU would reserve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace tpsim {

inline constexpr std::int64_t kBlockAlignment = 256;

// Source of segments: cudaMalloc, the heap, or a counter.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // Returns memory aligned to kBlockAlignment; null if there is none left. Segments count as
  // separate even if their addresses are adjacent: blocks do not span segments.
  virtual void* acquire_segment(std::int64_t bytes) = 0;
  virtual void release_segment(void* data, std::int64_t bytes) = 0;
};

class BlockCache {
 public:
  explicit BlockCache(SegmentSource& source) : source_(source) {}
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Returns a block of at least `bytes` bytes. If the source is out of memory, releases all free
  // segments and tries again; returns null if that fails too.
  void* acquire(std::int64_t bytes);
  // Frees a block. `data` must be a result of acquire().
  void give_back(void* data);
  // Returns segments without a used block to the source.
  void release_free_segments();

  // Used: sum of the rounded sizes of blocks in use. Reserved: sum of the sizes of all segments.
  std::int64_t used_bytes() const { return used_; }
  std::int64_t peak_used_bytes() const { return peak_used_; }
  std::int64_t reserved_bytes() const { return reserved_; }
  std::int64_t peak_reserved_bytes() const { return peak_reserved_; }
  // Number of segments that were returned to the source. Pointers into such segments are invalid.
  std::int64_t releases() const { return releases_; }

  // Return the size of the block that acquire(bytes) cuts, and the size of a new segment if no free
  // block holds `block` bytes.
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

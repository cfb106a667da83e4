#include "kernels/block_cache.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"

namespace tpsim {
namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
// Blocks up to half of kSharedSegment share segments. A larger block gets its own segment, rounded
// up to driver pages.
constexpr std::int64_t kSharedSegment = 20 * kMebibyte;
constexpr std::int64_t kDriverPage = 2 * kMebibyte;

std::int64_t rounded_up(std::int64_t bytes, std::int64_t step) {
  return (bytes + step - 1) / step * step;
}

}  // namespace

std::int64_t BlockCache::block_size(std::int64_t bytes) {
  return rounded_up(std::max<std::int64_t>(bytes, 1), kBlockAlignment);
}

std::int64_t BlockCache::segment_size(std::int64_t block) {
  return block <= kSharedSegment / 2 ? kSharedSegment : rounded_up(block, kDriverPage);
}

BlockCache::~BlockCache() {
  for (const auto& [data, bytes] : segments_) source_.release_segment(data, bytes);
}

void* BlockCache::acquire(std::int64_t bytes) {
  const std::int64_t size = block_size(bytes);
  const auto best = free_.lower_bound({size, nullptr});
  const auto from = best != free_.end() ? blocks_.find(best->second) : grown(size);
  if (from == blocks_.end()) return nullptr;
  return cut(from, size);
}

// Adds a segment as one free block. Returns end() if the source has no more memory.
BlockCache::Blocks::iterator BlockCache::grown(std::int64_t block) {
  const std::int64_t bytes = segment_size(block);
  void* data = source_.acquire_segment(bytes);
  if (data == nullptr) {
    // The source may have enough memory after free segments of other sizes are returned to it.
    release_free_segments();
    data = source_.acquire_segment(bytes);
  }
  if (data == nullptr) return blocks_.end();
  auto* const begin = static_cast<std::byte*>(data);
  segments_.emplace(begin, bytes);
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  free_.insert({bytes, begin});
  return blocks_.insert({begin, {bytes, begin, true}}).first;
}

void* BlockCache::cut(Blocks::iterator from, std::int64_t bytes) {
  auto& [data, block] = *from;
  free_.erase({block.bytes, data});
  if (block.bytes > bytes) {
    const std::int64_t rest = block.bytes - bytes;
    blocks_.insert({data + bytes, {rest, block.segment, true}});
    free_.insert({rest, data + bytes});
  }
  block.bytes = bytes;
  block.is_free = false;
  used_ += bytes;
  peak_used_ = std::max(peak_used_, used_);
  return data;
}

void BlockCache::give_back(void* data) {
  auto block = blocks_.find(static_cast<std::byte*>(data));
  TPSIM_CHECK(block != blocks_.end() && !block->second.is_free, "the memory is not a block in use");
  used_ -= block->second.bytes;
  block->second.is_free = true;
  block = merged_with_next(block);
  if (block != blocks_.begin()) {
    const auto before = std::prev(block);
    const bool joins = before->second.is_free && before->second.segment == block->second.segment;
    if (joins) {
      free_.erase({before->second.bytes, before->first});
      block = merged_with_next(before);
    }
  }
  free_.insert({block->second.bytes, block->first});
}

// Merges a block with the next block of the segment if that one is free. Returns the block.
BlockCache::Blocks::iterator BlockCache::merged_with_next(Blocks::iterator block) {
  const auto next = std::next(block);
  if (next == blocks_.end()) return block;
  const bool joins = next->second.is_free && next->second.segment == block->second.segment;
  if (!joins) return block;
  free_.erase({next->second.bytes, next->first});
  block->second.bytes += next->second.bytes;
  blocks_.erase(next);
  return block;
}

void BlockCache::release_free_segments() {
  std::vector<std::pair<std::byte*, std::int64_t>> whole;
  for (const auto& [data, bytes] : segments_) {
    const Block& first = blocks_.at(data);
    if (first.is_free && first.bytes == bytes) whole.emplace_back(data, bytes);
  }
  for (const auto& [data, bytes] : whole) {
    free_.erase({bytes, data});
    blocks_.erase(data);
    segments_.erase(data);
    reserved_ -= bytes;
    ++releases_;
    source_.release_segment(data, bytes);
  }
}

}  // namespace tpsim

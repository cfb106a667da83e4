#include "kernels/flash_memory.h"

#include <algorithm>

namespace tpsim {
namespace {

// Limit of the working memory in bytes. cuBLASLt's workspace has this size and is allocated before
// any attention. It fits in the L2 cache.
constexpr std::int64_t kRoom = std::int64_t{32} << 20;
// Number of work items that is enough for any GPU: four per SM of a B200 (148 SMs), because the
// longest items take twice the average time. All GPUs use this value, so that results are bit-equal
// on all of them.
constexpr std::int64_t kEnoughItems = 592;
constexpr std::int64_t kKeysOfBlock = 128;

constexpr std::int64_t rounded_up(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }
constexpr std::int64_t pieces_of(std::int64_t all, std::int64_t each) {
  return (all + each - 1) / each;
}

// Returns the number of equal parts into which the query heads of a key/value head are divided: the
// smallest number that gives kEnoughItems work items, at most one part per query head.
std::int64_t parts_of(const AttentionDims& dims) {
  const std::int64_t group = dims.heads / dims.kv_heads;
  const std::int64_t items = dims.batch * dims.kv_heads * pieces_of(key_count(dims), kKeysOfBlock);
  std::int64_t parts = 1;
  while (parts < group && (group % parts != 0 || items * parts < kEnoughItems)) ++parts;
  return parts;
}

}  // namespace

FlashMemory flash_backward_memory(const AttentionDims& dims) {
  const std::int64_t tiles = pieces_of(dims.seq, kFlashQueries);
  const std::int64_t width = flash_columns(dims);
  FlashMemory memory;
  memory.parts = parts_of(dims);
  const std::int64_t units = dims.batch * dims.kv_heads * memory.parts;
  memory.turns = rounded_up(dims.batch * dims.heads * dims.seq * 4);
  memory.turn_count = dims.batch * dims.heads * tiles * kFlashTurns;
  memory.sums = memory.turns + rounded_up((memory.turn_count + 1) * 4);
  const std::int64_t slot = dims.batch * dims.heads / units * tiles * kFlashQueries * width * 4;
  const std::int64_t most =
      std::min(std::max<std::int64_t>((kRoom - memory.sums) / slot, 2), units);
  // Takes the smallest number of rounds that `most` slots allow, then as few slots as suffice for
  // this number of rounds.
  memory.slots = pieces_of(units, pieces_of(units, most));
  memory.partials = memory.sums + memory.slots * slot;
  memory.bytes = memory.partials;
  if (memory.parts > 1) memory.bytes += 2 * units * key_count(dims) * width * 4;
  return memory;
}

FlashSchedule flash_schedule(const AttentionDims& dims, const FlashMemory& memory,
                             std::int64_t keys_of_block) {
  const std::int64_t keys = key_count(dims);
  const std::int64_t sample_units = dims.kv_heads * memory.parts;
  return {static_cast<int>(dims.batch * sample_units),
          static_cast<int>(sample_units),
          static_cast<int>(dims.heads / sample_units),
          static_cast<int>(memory.slots),
          static_cast<int>(keys_of_block),
          static_cast<int>(pieces_of(keys, keys_of_block)),
          static_cast<int>(kFlashQueries),
          static_cast<int>(pieces_of(dims.seq, kFlashQueries)),
          static_cast<int>(keys - dims.seq)};
}

// Selects the kernels as kernels/cuda/attention/flash_paths.h does. Assumes operands aligned for
// tensor cores, as in every training step.
std::int64_t flash_backward_scratch(const OpKey& key) {
  const auto [batch, seq, heads, kv_heads, head_dim, keys, reach, value_dim] = key.dims;
  const AttentionDims dims{batch, seq, heads, kv_heads, head_dim, keys, value_dim};
  const bool plain = size_of(key.dtype) != 2 || head_dim > 128 || head_dim % 8 != 0 ||
                     (key.variant & kCapped) != 0 || (reach > 0 && reach < key_count(dims));
  return plain ? batch * heads * seq * 4 : flash_backward_memory(dims).bytes;
}

}  // namespace tpsim

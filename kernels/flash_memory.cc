#include "kernels/flash_memory.h"

#include <algorithm>

namespace tpsim {
namespace {

// cuBLASLt's workspace, which is there before any attention; small enough for the L2 cache.
constexpr std::int64_t kRoom = std::int64_t{32} << 20;

constexpr std::int64_t rounded_up(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

FlashMemory flash_backward_memory(const AttentionDims& dims) {
  const std::int64_t tiles = (dims.seq + kFlashQueries - 1) / kFlashQueries;
  const std::int64_t width = dims.head_dim <= 64 ? 64 : 128;
  FlashMemory memory;
  memory.turns = rounded_up(dims.batch * dims.heads * dims.seq * 4);
  memory.turn_count = dims.batch * dims.heads * tiles * kFlashTurns;
  memory.sums = memory.turns + rounded_up((memory.turn_count + 1) * 4);
  const std::int64_t slot = dims.heads / dims.kv_heads * tiles * kFlashQueries * width * 4;
  memory.slots =
      std::clamp<std::int64_t>((kRoom - memory.sums) / slot, 1, dims.batch * dims.kv_heads);
  memory.bytes = memory.sums + memory.slots * slot;
  return memory;
}

// As kernels/cuda/attention/flash_paths.h chooses; operands of a training step lie as tensor cores
// want them.
std::int64_t flash_backward_scratch(const OpKey& key) {
  const auto [batch, seq, heads, kv_heads, head_dim, keys, reach, value_dim] = key.dims;
  const AttentionDims dims{batch, seq, heads, kv_heads, head_dim, keys, value_dim};
  const bool plain = size_of(key.dtype) != 2 || head_dim > 128 || head_dim % 8 != 0 ||
                     (key.variant & kCapped) != 0 || (reach > 0 && reach < key_count(dims));
  return plain ? batch * heads * seq * 4 : flash_backward_memory(dims).bytes;
}

}  // namespace tpsim

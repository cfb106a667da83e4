// Working memory of flash attention's backward on a GPU's tensor cores: sums of dq that blocks of
// keys add to, one after another. Known without a GPU, so that predictions count it.
#pragma once

#include <cstdint>

#include "core/program/program.h"
#include "kernels/attention_ops.h"

namespace tpsim {

inline constexpr std::int64_t kFlashQueries = 64;  // of a tile of the backward
inline constexpr std::int64_t kFlashTurns = 8;     // of a tile: one for each warp's part of its dq

// Offsets in bytes, multiples of 256.
struct FlashMemory {
  std::int64_t turns = 0;       // behind o . d_o of each query, [batch, heads, seq] fp32
  std::int64_t turn_count = 0;  // of 4 bytes; one more counts the blocks that have begun
  std::int64_t sums = 0;        // of dq, fp32
  std::int64_t slots = 0;       // heads of keys whose queries' sums have room at once
  std::int64_t bytes = 0;
};

// At most what products have as a workspace anyway, where one head of keys takes no more.
FlashMemory flash_backward_memory(const AttentionDims& dims);

// Bytes of working memory that the op of a flash backward's key takes on a GPU.
std::int64_t flash_backward_scratch(const OpKey& key);

}  // namespace tpsim

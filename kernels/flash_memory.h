// Working memory of flash attention's backward on a GPU's tensor cores: sums of dq that blocks of
// keys add to, one after another, and parts of dk and dv. Known without a GPU, so that predictions
// count it.
#pragma once

#include <cstdint>

#include "core/program/program.h"
#include "kernels/attention_ops.h"
#include "kernels/flash_schedule.h"

namespace tpsim {

inline constexpr std::int64_t kFlashQueries = 64;  // of a tile of the backward
inline constexpr std::int64_t kFlashTurns = 8;     // of a tile: one for each warp's part of its dq

// Offsets in bytes, multiples of 256.
struct FlashMemory {
  std::int64_t turns = 0;       // behind o . d_o of each query, [batch, heads, seq] fp32
  std::int64_t turn_count = 0;  // of 4 bytes; one more counts the blocks that have begun
  std::int64_t sums = 0;        // of dq, fp32
  std::int64_t slots = 0;       // units whose queries' sums have room at once
  // Units of a key/value head. Several where a head's blocks of keys are too few for a GPU's
  // multiprocessors: the units' dk and dv are then added up by a kernel of its own.
  std::int64_t parts = 1;
  // fp32 [dk, dv][sample][unit of the sample][key][column of 64 or 128]; nothing for one part.
  std::int64_t partials = 0;
  std::int64_t bytes = 0;
};

// Columns that a tile keeps of a head's vectors: 64 or 128.
inline std::int64_t flash_columns(const AttentionDims& dims) {
  return dims.head_dim <= 64 ? 64 : 128;
}

// Sums of dq take at most what products have as a workspace anyway, or two units where they take
// more.
FlashMemory flash_backward_memory(const AttentionDims& dims);

// Blocks of `keys_of_block` keys; `memory` as flash_backward_memory() gives it for `dims`.
FlashSchedule flash_schedule(const AttentionDims& dims, const FlashMemory& memory,
                             std::int64_t keys_of_block);

// Bytes of working memory that the op of a flash backward's key takes on a GPU.
std::int64_t flash_backward_scratch(const OpKey& key);

}  // namespace tpsim

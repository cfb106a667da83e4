// Working memory of the backward of flash attention with tensor cores: accumulators of dq, and
// partial dk and dv. Computed without a GPU, so that predictions include it.
#pragma once

#include <cstdint>

#include "core/program/program.h"
#include "kernels/attention_ops.h"
#include "kernels/flash_schedule.h"

namespace tpsim {

inline constexpr std::int64_t kFlashQueries = 64;  // queries of a backward tile
inline constexpr std::int64_t kFlashTurns = 8;     // counters of a tile: one per warp's part of dq

// Offsets in bytes, multiples of 256.
struct FlashMemory {
  std::int64_t turns = 0;       // counters, after o . d_o [batch, heads, seq] fp32
  std::int64_t turn_count = 0;  // 4-byte counters; one more counts the blocks that have started
  std::int64_t sums = 0;        // accumulators of dq, fp32
  std::int64_t slots = 0;       // units whose dq accumulators are in memory at once
  // Units per key/value head. A head has several units if its key blocks are too few for the SMs.
  // Another kernel then adds the units' dk and dv.
  std::int64_t parts = 1;
  // fp32 [dk, dv][sample][unit of the sample][key][column of 64 or 128]; empty for one part.
  std::int64_t partials = 0;
  std::int64_t bytes = 0;
};

// Returns the columns of a head's vectors in a tile: 64 or 128.
inline std::int64_t flash_columns(const AttentionDims& dims) {
  return dims.head_dim <= 64 ? 64 : 128;
}

// Returns the layout. Accumulators of dq take at most the workspace of GEMMs, or two units if these
// are larger.
FlashMemory flash_backward_memory(const AttentionDims& dims);

// Returns the schedule for blocks of `keys_of_block` keys. `memory` is the result of
// flash_backward_memory(dims).
FlashSchedule flash_schedule(const AttentionDims& dims, const FlashMemory& memory,
                             std::int64_t keys_of_block);

// Returns the working memory of a flash backward op on a GPU, in bytes.
std::int64_t flash_backward_scratch(const OpKey& key);

}  // namespace tpsim

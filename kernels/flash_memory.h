// Working memory of the tensor-core backward kernels of flash attention: accumulators of dq, and
// partial dk and dv. Its size is computed without a GPU, so that memory predictions include it.
#pragma once

#include <cstdint>

#include "core/program/program.h"
#include "kernels/attention_ops.h"
#include "kernels/flash_schedule.h"

namespace tpsim {

inline constexpr std::int64_t kFlashQueries = 64;  // queries of a backward tile
inline constexpr std::int64_t kFlashTurns = 8;     // counters per tile, one for each warp

// Offsets in bytes, multiples of 256.
struct FlashMemory {
  // Counters that order the additions to dq. The memory before the counters holds the dot products
  // o . d_o [batch, heads, seq] fp32.
  std::int64_t turns = 0;
  std::int64_t turn_count = 0;  // number of 4-byte counters; one more counts the started blocks
  std::int64_t sums = 0;        // accumulators of dq, fp32
  std::int64_t slots = 0;       // units whose dq accumulators are in memory at once
  // Units per key/value head (flash_schedule.h). More than 1 if there are too few key blocks to
  // occupy all SMs. A second kernel then sums dk and dv over the units.
  std::int64_t parts = 1;
  // Partial dk and dv, fp32 [dk, dv][sample][unit of the sample][key][column]; empty if parts = 1.
  std::int64_t partials = 0;
  std::int64_t bytes = 0;
};

// Returns the columns of a tile: head_dim rounded up to 64 or 128.
inline std::int64_t flash_columns(const AttentionDims& dims) {
  return dims.head_dim <= 64 ? 64 : 128;
}

// Returns the layout of the working memory. Without partial dk and dv it is at most as large as
// cuBLASLt's workspace, unless the dq accumulators of two units exceed this size.
FlashMemory flash_backward_memory(const AttentionDims& dims);

// Returns the schedule for blocks of `keys_of_block` keys. `memory` is the result of
// flash_backward_memory(dims).
FlashSchedule flash_schedule(const AttentionDims& dims, const FlashMemory& memory,
                             std::int64_t keys_of_block);

// Returns the working memory of a flash backward op on a GPU, in bytes.
std::int64_t flash_backward_scratch(const OpKey& key);

}  // namespace tpsim

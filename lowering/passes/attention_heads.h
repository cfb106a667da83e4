// Grouped queries in unfused attention. For a group of g query heads per key/value head, the
// reference model runs g batched GEMMs, one for the i-th query head of every group. Frameworks
// repeat keys and values (repeat_interleave) and run one batched GEMM over all query heads. The
// copies of the repeated keys and values are not counted.
#pragma once

#include "lowering/passes/lowered_layer.h"

namespace tpsim {

// Returns the number of query heads per key/value head on one tensor-parallel rank, at least 1.
std::int64_t heads_per_group(const AttentionShape& attention, std::int64_t tp);

// Replaces the `group` batched GEMMs of an attention core, whose keys are equal except for
// kAccumulate, by one GEMM over all query heads in the place of the first.
void merge_head_groups(LoweredLayer& layer, std::int64_t group);

}  // namespace tpsim

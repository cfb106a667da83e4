// Context parallelism: the ranks of a context group share every sequence.
//
// Causal attention gives late positions more to do. The sequence is cut into 2 cp equal chunks, and
// rank r holds chunk r and chunk 2 cp - 1 - r, one after the other, so that all ranks have as many
// query-key pairs. Everything but attention is local to a position. Attention gathers the keys and
// values of all positions before it and, in backward, adds their gradients up over the group: what
// Megatron calls cp_comm_type all_gather, and how LLaMA 3 was trained.
#pragma once

#include <vector>

#include "reference_model/parallel/qkv_layout.h"
#include "reference_model/parallel/rank_context.h"

namespace tpsim {

// Adjacent rows of a rank's part of the sequence that are adjacent positions of the whole.
struct SequenceRun {
  std::int64_t row = 0;  // in the rank's part
  std::int64_t count = 0;
  std::int64_t position = 0;  // of the first row in the whole sequence
};
// What a rank holds inside the tensor-parallel region: one run, or two with context parallelism.
std::vector<SequenceRun> sequence_runs(const RankContext& context);
// What it holds outside: its share of that with sequence parallelism; rows count from the share.
std::vector<SequenceRun> share_runs(const RankContext& context);

// Keys and values of every position of the sequence, in order: [model.seq, batch, key_value_width],
// from this rank's qkv [seq, batch, qkv_width].
Tensor gather_key_values(const RankContext& context, const QkvLayout& layout, const Tensor& qkv);
// The conjugate: gradients of all keys and values, each rank's from its own queries, add up over
// the group, and this rank's positions of the sum go to the keys and values of dqkv.
void reduce_key_values(const RankContext& context, const QkvLayout& layout, Tensor gradients,
                       const Tensor& dqkv);

}  // namespace tpsim

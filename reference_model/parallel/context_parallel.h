// Context parallelism: each sequence is sharded over the ranks of a context group.
//
// In causal attention, later positions attend to more keys. The sequence is therefore cut into 2 cp
// equal chunks. Rank r holds chunk r and chunk 2 cp - 1 - r, so that all ranks have equally many
// query-key pairs. Only attention needs positions of other ranks: it all-gathers the keys and
// values of the sequence and, in backward, reduce-scatters their gradients over the group. Megatron
// calls this cp_comm_type all_gather; LLaMA 3 was trained this way.
#pragma once

#include <vector>

#include "reference_model/parallel/qkv_layout.h"
#include "reference_model/parallel/rank_context.h"

namespace tpsim {

// Rows of a rank with consecutive positions in the sequence.
struct SequenceRun {
  std::int64_t row = 0;  // first row on the rank
  std::int64_t count = 0;
  std::int64_t position = 0;  // position of the first row in the sequence
};
// Returns the rows that a rank holds inside the tensor-parallel region: one run, or two with
// context parallelism.
std::vector<SequenceRun> sequence_runs(const RankContext& context);
// Returns the rows that a rank holds outside the tensor-parallel region: the sequence-parallel
// shard, with rows relative to the shard.
std::vector<SequenceRun> share_runs(const RankContext& context);

// All-gathers keys and values over the context group. Returns them in the order of positions,
// [model.seq, batch, key_value_width], from this rank's qkv [seq, batch, qkv_width].
Tensor gather_key_values(const RankContext& context, const QkvLayout& layout, const Tensor& qkv);
// The backward of gather_key_values(): sums `gradients` of all keys and values over the group, and
// writes this rank's positions to the keys and values of dqkv.
void reduce_key_values(const RankContext& context, const QkvLayout& layout, Tensor gradients,
                       const Tensor& dqkv);

}  // namespace tpsim

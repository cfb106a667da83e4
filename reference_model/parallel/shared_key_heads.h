// Grouped-query attention with fewer key/value heads than tensor-parallel ranks: several ranks
// share a head.
//
// As in Megatron-Core's SelfAttention (megatron/core/transformer/attention.py, "num_query_groups <
// world_size") the projection is sharded evenly over all ranks. Its output is all-gathered. Every
// rank takes its own queries, and the whole key and value head that these queries attend to.
#pragma once

#include "kernels/ops.h"
#include "reference_model/parallel/qkv_layout.h"
#include "reference_model/parallel/rank_context.h"

namespace tpsim {

bool shares_key_heads(const RankContext& context);

// All-gathers `columns`, this rank's columns of q, k and v, [positions, batch, columns]. Returns
// this rank's whole heads, [positions, batch, qkv_width(layout)]. `gathered` receives the columns
// of all ranks, [ranks, positions, batch, columns]. The caller keeps `gathered` until the backward
// of attention, so that the peak memory equals Megatron's, where v is a view of it.
Tensor gather_key_heads(const RankContext& context, const QkvLayout& layout, const Tensor& columns,
                        Tensor& gathered);
// Backward: returns the gradient of `columns`, summed over the ranks that share a head.
Tensor scatter_key_heads(const RankContext& context, const QkvLayout& layout, const Tensor& dqkv);

}  // namespace tpsim

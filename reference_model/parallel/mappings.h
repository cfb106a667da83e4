// Collectives at the entry and the exit of the tensor-parallel region: Megatron's mappings.py.
//
//                                                      forward         backward
//   enter the region, without sequence parallelism     nothing         all-reduce
//       copy_to_tensor_model_parallel_region
//   enter the region, with sequence parallelism        all-gather      reduce-scatter
//       gather_from_sequence_parallel_region
//   leave the region, without sequence parallelism     all-reduce      nothing
//       reduce_from_tensor_model_parallel_region
//   leave the region, with sequence parallelism        reduce-scatter  all-gather
//       reduce_scatter_to_sequence_parallel_region
//
// The backward of entering is leave_tensor_parallel() on the gradient, and vice versa. Megatron's
// scatter_to_ and gather_from_tensor_model_parallel_region are not needed, since outputs stay
// sharded. Korthikanti et al. 2022, section 4.2. A sequence shard is contiguous, because
// activations are sequence-major.
#pragma once

#include <functional>

#include "reference_model/parallel/rank_context.h"

namespace tpsim {

// All-gathers x over the tensor group: [seq_share, batch, n] -> [seq, batch, n]. Without sequence
// parallelism, returns x.
Tensor enter_tensor_parallel(const RankContext& context, const Tensor& x, const Label& label);
// Returns the tensor to save for wgrad: `inside`, the gathered x; or x itself, if backward gathers
// again (options.tp_recompute_allgather, or ops are recomputed).
const Tensor& kept_input(const RankContext& context, const Tensor& x, const Tensor& inside);
// Returns the gathered input in backward; undefined if none was saved. Repeats the all-gather if
// kept_input() saved the shard x.
Tensor regather_input(const RankContext& context, const Tensor& kept, const Label& label);
// Sums partial sums [seq, batch, n] over the tensor group -> [seq_share, batch, n]: all-reduce in
// place, or reduce-scatter with sequence parallelism.
Tensor leave_tensor_parallel(const RankContext& context, Tensor x, const Label& label);

// Whether the all-reduce or reduce-scatter of dgrad overlaps with the wgrad GEMM.
bool overlaps_input_gradient_reduction(const RankContext& context);
// Runs `work` and leave_tensor_parallel(x). Overlaps them if overlaps_input_gradient_reduction(),
// else runs `work` first. `work` must neither use x nor communicate in the tensor group.
Tensor leave_overlapped(const RankContext& context, Tensor x, const Label& label,
                        const std::function<void()>& work);

}  // namespace tpsim

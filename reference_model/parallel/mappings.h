// The borders of the tensor-parallel region. Each function and its conjugate in backward:
//
//   entering the region   forward             backward
//   without sequence p.   nothing             all-reduce       (copy-to)
//   with                  all-gather          reduce-scatter   (gather-from-sequence)
//   leaving the region
//   without               all-reduce          nothing          (reduce-from)
//   with                  reduce-scatter      all-gather       (scatter-to-sequence)
//
// Korthikanti et al. 2022, section 4.2. Sequence shards are contiguous because activations are
// sequence-major.
#pragma once

#include <functional>

#include "reference_model/parallel/rank_context.h"

namespace tpsim {

// [seq_share, batch, n] -> [seq, batch, n]; x itself where the region holds the same tensor.
Tensor enter_tensor_parallel(const RankContext& context, const Tensor& x, const Label& label);
// What the input x of a region leaves for the weight gradients of backward, `inside` being what x
// became: x, gathered again then, or `inside` without options.tp_recompute_allgather.
const Tensor& kept_input(const RankContext& context, const Tensor& x, const Tensor& inside);
// From what kept_input() left to `inside`.
Tensor regather_input(const RankContext& context, const Tensor& kept, const Label& label);
// A partial sum over the tensor group [seq, batch, n] -> its total, [seq_share, batch, n]. The
// result may be x itself, reduced in place.
Tensor leave_tensor_parallel(const RankContext& context, Tensor x, const Label& label);

// Whether the software adds up input gradients beside the products of weight gradients.
bool overlaps_input_gradient_reduction(const RankContext& context);
// Runs `work` and leaves, which goes on meanwhile where overlaps_input_gradient_reduction(). `work`
// has no part in x and asks nothing of the tensor group.
Tensor leave_overlapped(const RankContext& context, Tensor x, const Label& label,
                        const std::function<void()>& work);

}  // namespace tpsim

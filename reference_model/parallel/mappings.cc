#include "reference_model/parallel/mappings.h"

#include <utility>

namespace tpsim {
namespace {

// Whether the gathered input is saved for backward. Recompute::kOps repeats the all-gather in
// backward, and therefore saves only the shard.
bool keeps_gathered(const RankContext& context) {
  return !context.options.tp_recompute_allgather && context.plan.recompute != Recompute::kOps;
}

}  // namespace

Tensor enter_tensor_parallel(const RankContext& context, const Tensor& x, const Label& label) {
  if (!context.plan.sequence_parallel) return x;
  const Shape& part = x.shape();
  Tensor whole = allocate_activation(context, {part[0] * context.plan.degrees.tp, part[1], part[2]},
                                     label.text);
  context.groups.tensor.all_gather(x, whole, label);
  return whole;
}

const Tensor& kept_input(const RankContext& context, const Tensor& x, const Tensor& inside) {
  return keeps_gathered(context) ? inside : x;
}

Tensor regather_input(const RankContext& context, const Tensor& kept, const Label& label) {
  return keeps_gathered(context) || !kept.defined() ? kept
                                                    : enter_tensor_parallel(context, kept, label);
}

Tensor leave_tensor_parallel(const RankContext& context, Tensor x, const Label& label) {
  if (!context.plan.sequence_parallel) {
    context.groups.tensor.all_reduce(x, ReduceOp::kSum, label);
    return x;
  }
  const Shape& whole = x.shape();
  Tensor part = allocate_activation(
      context, {whole[0] / context.plan.degrees.tp, whole[1], whole[2]}, label.text);
  context.groups.tensor.reduce_scatter(x, part, label);
  return part;
}

bool overlaps_input_gradient_reduction(const RankContext& context) {
  return context.options.overlap_tensor_reduction && context.groups.tensor.size() > 1;
}

Tensor leave_overlapped(const RankContext& context, Tensor x, const Label& label,
                        const std::function<void()>& work) {
  if (!overlaps_input_gradient_reduction(context)) {
    work();
    return leave_tensor_parallel(context, std::move(x), label);
  }
  Communicator& group = context.groups.tensor;
  if (context.plan.sequence_parallel) {
    const Tensor whole = std::move(x);
    x = allocate_activation(context, residual_shape(context), label.text);
    group.begin_reduce_scatter(whole, x, label);
  } else {
    group.begin_all_reduce(x, ReduceOp::kSum, label);
  }
  work();
  group.finish();
  return x;
}

}  // namespace tpsim

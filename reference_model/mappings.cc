#include "reference_model/mappings.h"

namespace tpsim {

Tensor enter_tensor_parallel(const RankContext& context, const Tensor& x, const char* label) {
  if (!context.plan.sequence_parallel) return x;
  const Shape& part = x.shape();
  Tensor whole =
      allocate_activation(context, {part[0] * context.plan.degrees.tp, part[1], part[2]}, label);
  context.groups.tensor.all_gather(x, whole, {ModelPart::kTensorParallel, label});
  return whole;
}

Tensor leave_tensor_parallel(const RankContext& context, Tensor x, const char* label) {
  if (!context.plan.sequence_parallel) {
    context.groups.tensor.all_reduce(x, ReduceOp::kSum, {ModelPart::kTensorParallel, label});
    return x;
  }
  const Shape& whole = x.shape();
  Tensor part =
      allocate_activation(context, {whole[0] / context.plan.degrees.tp, whole[1], whole[2]}, label);
  context.groups.tensor.reduce_scatter(x, part, {ModelPart::kTensorParallel, label});
  return part;
}

}  // namespace tpsim

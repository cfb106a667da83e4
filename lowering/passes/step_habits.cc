#include "lowering/passes/step_habits.h"

#include "core/software/optimizer_kinds.h"

namespace tpsim {

StepHabits step_habits(const StackSpec& stack, const Plan& plan) {
  StepHabits habits;
  const MasterWeights masters = stack.parts.master_weights;
  const bool whole_backward = masters == MasterWeights::kAutocast && stack.parts.compile &&
                              plan.zero == 0 && plan.dtype != DType::kFloat32;
  habits.frees_gradients = masters != MasterWeights::kCopy && plan.degrees.pp == 1 &&
                           micro_batches(plan) == 1 && !whole_backward;
  if (whole_backward) habits.narrow_gradients = 0.5;
  habits.separate_pools = habits.frees_gradients && plan.zero >= 2 && has_replicas(plan);
  const OptimizerKind optimizer = stack.training.optimizer_kind;
  if (stack.parts.optimizer_kernel == KernelFusion::kTorch && plan.offload == Offload::kNone &&
      keeps(optimizer, StateTensor::kVariance)) {
    const auto moment = static_cast<double>(size_of(stack.parts.optimizer_dtype));
    habits.optimizer_copy = moment / state_bytes(optimizer, stack.parts, plan.dtype);
  }
  habits.splits_blocks = stack.memory.caching_allocator && !stack.parts.expandable_segments;
  return habits;
}

}  // namespace tpsim

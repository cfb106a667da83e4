#include "lowering/passes/step_habits.h"

#include <utility>

#include "reference_model/layers/rotary_table.h"

namespace tpsim {
namespace {

// With blocking launches, adds the wait for the kernel to the host time per op and collective.
void add_blocking_launches(StackSpec& stack) {
  if (!stack.parts.blocking_launches) return;
  stack.host.per_op += std::exchange(stack.host.blocking_op, Seconds());
  stack.host.per_collective += std::exchange(stack.host.blocking_collective, Seconds());
}

// Resolves kFusedUnscaled: the fused rotary kernel does not support scaled cosines and sines, so
// models with such a scale run plain ops.
void resolve_rotary_kernel(RotaryKernel& rotary, const ModelSpec& model) {
  if (rotary != RotaryKernel::kFusedUnscaled) return;
  const bool turns = model.attention.position == PositionKind::kRotary;
  const bool scaled = turns && rotary_table(model).magnitude != 1;
  rotary = scaled ? RotaryKernel::kTorch : RotaryKernel::kFused;
}

// Autocast casts the fp32 weights of full training. Beside adapters, the frozen weights and all
// activations have 16 bits.
void resolve_autocast(StackSpec& stack) {
  const bool is_autocast = stack.parts.master_weights == MasterWeights::kAutocast;
  if (finetune_of(stack).adapts && is_autocast) {
    stack.parts.master_weights = MasterWeights::kCopy;
  }
}

}  // namespace

Scenario resolved(Scenario scenario) {
  scenario.model = trained_model(scenario.model, finetune_of(scenario.stack));
  resolve_autocast(scenario.stack);
  add_blocking_launches(scenario.stack);
  resolve_rotary_kernel(scenario.stack.parts.rotary_kernel, scenario.model);
  return scenario;
}

bool has_owners(const StackSpec& stack, int zero) {
  return stack.parts.data_parallel_sync == DataParallelSync::kOwners ||
         (zero == 1 && optimizer_of(stack).needs_whole_matrices);
}

bool keeps_fp32_weights_alone(const StackSpec& stack, DType dtype) {
  return updates_fp32_weights(stack.parts, dtype) && !keeps_two_copies(stack.parts, dtype);
}

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
  if (stack.parts.optimizer_kernel == KernelFusion::kTorch && !offloads_optimizer(plan) &&
      row_of(optimizer).unfused.launches > 0 && keeps(optimizer, StateTensor::kVariance)) {
    const auto moment = static_cast<double>(size_of(stack.parts.optimizer_dtype));
    habits.optimizer_copy = moment / state_bytes(optimizer, stack.parts, plan.dtype);
  }
  habits.splits_blocks = stack.memory.caching_allocator && !stack.parts.expandable_segments;
  return habits;
}

Bytes checkpoint_size(const ModelSpec& model, const Plan& plan, const StackSpec& stack) {
  const SoftwareParts& parts = stack.parts;
  const Finetune& finetune = finetune_of(stack);
  const double weights = static_cast<double>(trained_counts(model, finetune).trained);
  const bool twice =
      model.tied_embedding && plan.degrees.pp > 1 && trains_table(model, finetune, true);
  const double copy = twice ? static_cast<double>(model.vocab * model.hidden) : 0.0;
  const bool is_wide = plan.dtype == DType::kFloat32;
  const bool has_master = !is_wide && updates_fp32_weights(parts, plan.dtype);
  const bool has_narrow = !has_master || keeps_two_copies(parts, plan.dtype);
  const double per_weight = has_narrow ? static_cast<double>(size_of(plan.dtype)) : 0;
  const double of_copy =
      copy * state_bytes(updater_of(stack.training.optimizer_kind, false), parts, plan.dtype);
  if (finetune.freezes()) {
    const OptimizerKind updater = updater_of(stack.training.optimizer_kind, true);
    return Bytes(weights * (per_weight + state_bytes(updater, parts, plan.dtype)) + of_copy);
  }
  return Bytes(weights * per_weight + state_bytes(model, stack, plan.dtype) + of_copy);
}

}  // namespace tpsim

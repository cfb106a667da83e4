// Passes over the end of a step: dtypes of the optimizer state, buckets and broadcasts, kernels,
// and host work.
#include <algorithm>
#include <cmath>

#include "core/program/op_dims.h"
#include "core/software/optimizer_kinds.h"
#include "lowering/passes/lower.h"
#include "lowering/passes/quantization.h"
#include "lowering/passes/shard_groups.h"
#include "lowering/passes/step_habits.h"
#include "lowering/passes/unfused_kernels.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {
namespace {

bool is_parameter_gather(const CollectiveRecord& record) {
  return record.label.part == ModelPart::kParameterGather;
}

// Splits a call into `calls` of equal size. Below one: a call carries several such records.
void split(LoweredCollective& record, double calls) {
  if (record.bytes <= 0) {
    record.calls = 0;
    return;
  }
  record.bytes = std::llround(static_cast<double>(record.bytes) / calls);
  record.calls *= calls;
}

// Returns the number of broadcasts by the owners of a layer's weights, which run one after the
// other. An owner owns a part of a block, or several blocks of a stage.
double owner_broadcasts(const StepEndInputs& inputs) {
  const auto blocks = static_cast<double>(inputs.scenario.model.layers) /
                      static_cast<double>(inputs.plan.degrees.pp);
  const double owners =
      static_cast<double>(shard_ranks(inputs.scenario, inputs.plan)) / std::max(1.0, blocks);
  return std::min(owners, static_cast<double>(inputs.trace.tensors));
}

// Returns the bytes of a bucket, which has a number of elements of the dtype that is reduced; 0 if
// gradients are reduced in one call.
double bucket_bytes(const StepEndInputs& inputs) {
  const StackSpec& stack = inputs.scenario.stack;
  const Plan& plan = inputs.plan;
  const bool as_computed =
      plan.zero >= 2 && stack.training.reduce_dtype == ReduceDtype::kAsComputed;
  const DType reduced = as_computed ? plan.dtype : plan.gradient_dtype;
  return static_cast<double>(stack.memory.reduction_bucket * size_of(reduced));
}

// Returns the bytes of all moments per parameter of a layer. Where AdamW updates embeddings, its
// moments keep the stack's dtype; of two tables of words, the head's is not an embedding.
double moments_of(const LoweredLayer& layer, const Scenario& scenario) {
  const auto of_row = [&](const OptimizerRow& row) {
    return static_cast<double>(row.moments) *
           moment_bytes(row, scenario.stack.parts.optimizer_dtype);
  };
  const OptimizerRow& row = updating_row(scenario.stack);
  const bool has_words = layer.kind == LayerKind::kWordEmbeddings;
  const bool embeds = has_words || layer.kind == LayerKind::kEmbedding;
  if (!embeds || row.updates != UpdatedParameters::kNotEmbeddings) return of_row(row);
  const double own = of_row(row_of(OptimizerKind::kAdamW));
  return has_words && !scenario.model.tied_embedding ? (own + of_row(row)) / 2 : own;
}

// Returns the traffic of an AdamW op with these bytes of moments, relative to the same op with fp32
// moments and an fp32 copy of the weights; 1 for other ops. State is read and written. Without the
// fp32 copy, the weights are read instead.
double state_traffic(const OpRecord& op, double kept, const StackSpec& stack) {
  if (op.key.kind != OpKind::kAdamW) return 1;
  const bool has_copy = updates_fp32_weights(stack.parts, op.key.dtype);
  const std::int64_t wide = size_of(DType::kFloat32);
  const auto traced = static_cast<double>(row_of(OptimizerKind::kAdamW).moments * wide);
  const double moments = 2 * (traced - kept);
  const double copy = has_copy ? 0 : static_cast<double>(2 * wide - size_of(op.key.dtype));
  return 1 - (moments + copy) * product_of(op.key, ElementDim::kElements) / op.bytes;
}

}  // namespace

// Sets the moments to the stack's dtype or the optimizer's format, for any dtype of the weights
// (Transformer Engine's FusedAdam, exp_avg_dtype). Removes the fp32 copy of the weights if the
// stack has none. An offloaded optimizer keeps all three in fp32. Of shards in host memory, one
// copy exists if the stack keeps fp32 weights alone.
void narrow_optimizer_state(LoweredLayer& layer, const StepEndInputs& inputs) {
  const SoftwareParts& parts = inputs.scenario.stack.parts;
  const bool has_copy = parts.master_weights != MasterWeights::kNone;
  const double of_moment = moments_of(layer, inputs.scenario) /
                           static_cast<double>(row_of(OptimizerKind::kAdamW).moments);
  const DType dtype = inputs.plan.dtype;
  for (LoweredAllocation& state : layer.allocations) {
    if (state.category == MemoryCategory::kHost && offloads_weights(inputs.plan)) {
      const bool is_master = state.role == AllocationRole::kMasterWeights;
      const bool is_copy = state.label == std::string_view(kWeightShare) &&
                           keeps_fp32_weights_alone(inputs.scenario.stack, dtype);
      if (is_copy || (is_master && !has_copy)) state.bytes = 0;
    }
    if (state.category != MemoryCategory::kOptimizer) continue;
    if (state.role == AllocationRole::kMasterWeights) {
      if (!has_copy) state.bytes = 0;
      continue;
    }
    const std::int64_t elements = state.bytes / size_of(DType::kFloat32);
    state.bytes = std::llround(static_cast<double>(elements) * of_moment);
  }
}

void gather_narrow_weights(LoweredLayer& layer, const StepEndInputs& inputs) {
  const Plan& plan = inputs.plan;
  if (!gathers_in_8_bits(plan)) return;
  for (LoweredCollective& record : layer.collectives) {
    if (is_parameter_gather(record)) record.bytes /= size_of(plan.dtype);
  }
}

void reduce_in_buckets(LoweredLayer& layer, const StepEndInputs& inputs) {
  set_sync(layer, inputs.scenario.stack);
  const double bucket = bucket_bytes(inputs);
  for (LoweredCollective& record : layer.collectives) {
    const bool has_owners = record.sync == DataParallelSync::kOwners;
    const bool is_gather = record.kind == CollectiveKind::kAllGather && is_parameter_gather(record);
    const bool is_reduction = record.label.part == ModelPart::kDataParallelReduction;
    if (has_owners && is_gather) {
      split(record, owner_broadcasts(inputs));
    } else if (is_reduction && bucket > 0) {
      split(record, static_cast<double>(record.bytes) / bucket);
    }
  }
}

void unfuse_optimizer(LoweredLayer& layer, const StepEndInputs& inputs) {
  const StackSpec& stack = inputs.scenario.stack;
  const double moments = moments_of(layer, inputs.scenario);
  // The passes of AdamW are counted for its usual state, those of others for their own.
  const bool has_own_passes =
      updating_row(stack).kind != OptimizerKind::kAdamW && updates_in_passes(stack);
  for (LoweredOp& op : layer.ops) {
    const UnfusedKernels kernel =
        unfused_kernels_of(op, stack, inputs.scenario.model.activation_ops);
    op.launches = kernel.launches;
    op.traffic = kernel.traffic * (has_own_passes ? 1 : state_traffic(op, moments, stack));
  }
}

void issue_step_end(LoweredLayer& layer, const StepEndInputs& inputs) {
  const HostCost& host = inputs.scenario.stack.host;
  for (LoweredOp& op : layer.ops) op.issue = host.per_op;
  for (LoweredCollective& record : layer.collectives) record.issue = host.per_collective;
}

}  // namespace tpsim

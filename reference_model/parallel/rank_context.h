// The context of every layer: device, process groups, plan, and the sizes of this rank's shards.
// Holds the state that Megatron keeps in mpu (get_tensor_model_parallel_rank() and the like).
#pragma once

#include <cstdint>

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/plan/rank_layout.h"
#include "core/software/stack_spec.h"
#include "kernels/device.h"
#include "ranks/communicator.h"

namespace tpsim {

// The communicators of one rank, which must outlive the model. OwnedGroups creates them
// (reference_model/parallel/process_groups.h); core/plan/rank_layout.h defines their ranks.
// Activations and their gradients have one pipeline communicator each, so that messages in one
// direction stay in order.
struct ProcessGroups {
  Communicator& tensor;
  Communicator& data;  // ranks that hold the same weights: data x context parallel
  // Same ranks as `data` and `expert_data`, for gradient reductions. Separate communicators if
  // reductions overlap with ZeRO-3's gathers.
  Communicator& reduction;
  Communicator& expert_reduction;
  Communicator& pipeline_forward;
  Communicator& pipeline_backward;
  Communicator& embedding;  // first and last stage; other stages: this rank only
  Communicator& model;      // tensor x pipeline: one copy of all weights
  Communicator& world;
  Communicator& context;      // ranks over which each sequence is sharded
  Communicator& expert;       // expert-parallel ranks
  Communicator& expert_data;  // ranks that hold the same experts
  // Ranks over which each expert is sharded. expert_tensor and expert_data equal `tensor` and
  // `data` if experts are sharded like the rest of a block.
  Communicator& expert_tensor;
};

// Load balancing of experts (reference_model/layers/expert_balance.h). 0 switches a method off.
struct BalanceSettings {
  double auxiliary_loss = 0;  // coefficient of the auxiliary loss
  double bias_rate = 0;       // change of an expert's bias per step
};
class ExpertLoads;
class DelayedScales;
class WeightGradients;

struct RankContext {
  Device& device;
  ProcessGroups groups;
  RankCoordinates at;
  ModelSpec model;
  Plan plan;
  TrainingOptions options;
  BalanceSettings balance = {};
  ExpertLoads* loads = nullptr;                 // token counts of experts; null: not counted
  const DelayedScales* scales = nullptr;        // with Precision::kFp8; null if no op is executed
  WeightGradients* weight_gradients = nullptr;  // of a split backward; null: not split
};

// Sizes of a rank's share of the tensors of one micro-batch.
struct LocalSizes {
  std::int64_t batch = 0;      // micro-batch
  std::int64_t seq = 0;        // positions inside the tensor-parallel region: seq / cp
  std::int64_t seq_share = 0;  // positions outside it: seq / tp with sequence parallelism
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t ffn = 0;            // of one expert if the model has experts
  std::int64_t experts = 0;        // of this rank
  std::int64_t vocab = 0;          // padded vocab size / tp
  std::int64_t vocab_begin = 0;    // first token id of this rank (Megatron's VocabUtility)
  std::int64_t vocab_columns = 0;  // token ids among `vocab` that are not padding
};
LocalSizes local_sizes(const RankContext& context);

// Shape of a rank's activation outside the tensor-parallel region.
Shape residual_shape(const RankContext& context);  // [seq_share, batch, hidden]
// Shape of the activation that a stage sends to the next: [seq_share, batch, hidden x residual
// streams].
Shape stage_shape(const RankContext& context);
// Allocates a dropout mask with the shape of `like`, uint8.
Tensor allocate_mask(const RankContext& context, const Tensor& like, const char* label);
// Returns a dropout seed. Corresponds to Megatron's CudaRNGStatesTracker. The seed depends on
// layer, forward pass of the layer (`draw`), dropout op in the layer (`place`) and data-parallel
// rank. With `by_rank` it also depends on the tensor-parallel rank, for tensors that are sharded.
std::uint64_t dropout_seed(const RankContext& context, std::int64_t layer, std::int64_t draw,
                           int place, bool by_rank);
// Returns the maximum of `mine` over all ranks of the world. Collective, and a barrier.
float greatest_over_world(const RankContext& context, float mine, const Label& label);
Tensor allocate_activation(const RankContext& context, Shape shape, const char* label,
                           AllocationRole role = AllocationRole::kOther);

}  // namespace tpsim

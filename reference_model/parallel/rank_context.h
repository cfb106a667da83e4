// What every layer of a rank needs to know: its device, its groups, and the sizes of its shard.
#pragma once

#include <cstdint>

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/plan/rank_layout.h"
#include "core/software/stack_spec.h"
#include "kernels/device.h"
#include "ranks/communicator.h"

namespace tpsim {

// The communicators of one rank, as OwnedGroups forms them
// (reference_model/parallel/process_groups.h) and core/plan/rank_layout.h numbers their members;
// they outlive the model. Activations and their gradients travel on two pipeline communicators, so
// that messages between two ranks stay in one order each.
struct ProcessGroups {
  Communicator& tensor;
  Communicator& data;  // ranks that hold the same weights: data x context parallel
  // The same ranks as of `data` and `expert_data`, for reductions of gradients. Groups of their own
  // where these run beside ops while the others gather weights.
  Communicator& reduction;
  Communicator& expert_reduction;
  Communicator& pipeline_forward;
  Communicator& pipeline_backward;
  Communicator& embedding;  // first and last stage; of one rank elsewhere
  Communicator& model;      // tensor x pipeline: all weights once
  Communicator& world;
  Communicator& context;      // ranks that share every sequence
  Communicator& expert;       // ranks that share out the experts
  Communicator& expert_data;  // ranks that hold the same experts
  // Ranks that share every expert. This and the one above are the tensor and the data group where
  // experts lie on the ranks as the rest of a block does.
  Communicator& expert_tensor;
};

// How the load of experts is kept even while training (reference_model/layers/expert_balance.h);
// zero: not at all.
struct BalanceSettings {
  double auxiliary_loss = 0;  // its coefficient
  double bias_rate = 0;       // by which biases of the choice move in a step
};
class ExpertLoads;
class DelayedScales;

struct RankContext {
  Device& device;
  ProcessGroups groups;
  RankCoordinates at;
  ModelSpec model;
  Plan plan;
  TrainingOptions options;
  BalanceSettings balance = {};
  ExpertLoads* loads = nullptr;           // where tokens of experts are counted; null: nowhere
  const DelayedScales* scales = nullptr;  // of Precision::kFp8; null: products are not run
};

// Sizes of a rank's share of the tensors of one micro-batch.
struct LocalSizes {
  std::int64_t batch = 0;      // micro-batch
  std::int64_t seq = 0;        // positions inside the tensor-parallel region: seq / cp
  std::int64_t seq_share = 0;  // positions outside it: seq / tp with sequence parallelism
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t ffn = 0;            // of one expert, where there are experts
  std::int64_t experts = 0;        // of this rank
  std::int64_t vocab = 0;          // of the padded vocabulary
  std::int64_t vocab_begin = 0;    // first word of this rank
  std::int64_t vocab_columns = 0;  // real words among `vocab`
};
LocalSizes local_sizes(const RankContext& context);

// A rank's activation of one micro-batch outside / inside the tensor-parallel region.
Shape residual_shape(const RankContext& context);  // [seq_share, batch, hidden]
// [elements of like] uint8, for dropout.
Tensor allocate_mask(const RankContext& context, const Tensor& like, const char* label);
// A seed of dropout. It differs for every layer, for every forward of the layer (`draw` counts
// them), and for every place inside it. Where tensor-parallel ranks hold different parts, `by_rank`
// gives each its own.
std::uint64_t dropout_seed(const RankContext& context, std::int64_t layer, std::int64_t draw,
                           int place, bool by_rank);
// The greatest of a number that every rank of the world gives; a barrier too.
float greatest_over_world(const RankContext& context, float mine, const Label& label);
Tensor allocate_activation(const RankContext& context, Shape shape, const char* label);

}  // namespace tpsim

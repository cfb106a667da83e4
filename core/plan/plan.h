// A plan: the parallel layout of a model over GPUs, and how a step runs. Plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/enum_words.h"
#include "core/base/result.h"
#include "core/model/model_spec.h"

namespace tpsim {

struct ParallelDegrees {
  std::int64_t tp = 1;  // tensor
  std::int64_t pp = 1;  // pipeline
  std::int64_t dp = 1;  // data
  std::int64_t cp = 1;  // context: ranks that split every sequence
  std::int64_t ep = 1;  // expert: ranks of a stage that split the experts, may exceed dp
  // Expert-tensor: ranks that split every expert. 0: tp. Experts use etp x ep x edp over the same
  // ranks that attention splits into tp x cp x dp (Liu et al. 2025, arXiv 2504.14960).
  std::int64_t etp = 0;
  friend auto operator<=>(const ParallelDegrees&, const ParallelDegrees&) = default;
};

// kBlocks: full recompute of the first Plan::recompute_blocks blocks of every model chunk, none of
// the others. kOps: recomputes every second GEMM of the linear layers and all ops that are not
// GEMMs, but not attention (torchtitan's selective option "op"); predicted only.
enum class Recompute : std::uint8_t { kNone, kSelective, kFull, kBlocks, kOps };
template <>
inline constexpr auto kEnumNames<Recompute> = words<5>("none selective full blocks ops");

enum class AttentionKind : std::uint8_t { kUnfused, kFlash };
template <>
inline constexpr auto kEnumNames<AttentionKind> = words<2>("unfused flash");

// reference_model/parallel/schedule.h describes them.
enum class ScheduleKind : std::uint8_t { kGpipe, kOneFOneB, kInterleaved, kZbH1 };
template <>
inline constexpr auto kEnumNames<ScheduleKind> = words<4>("gpipe 1f1b interleaved zb-h1");

// State kept in host memory. kOptimizer: the optimizer state, which the CPU updates (Ren et al.
// 2021, ZeRO-Offload); gradients are copied to the host and updated weights back. kParameters: also
// the shards of weights and gradients with ZeRO 3 (Rajbhandari et al. 2021, ZeRO-Infinity; FSDP's
// CPU offload). A layer's shard is copied to the GPU before each gather.
enum class Offload : std::uint8_t { kNone, kOptimizer, kParameters };
template <>
inline constexpr auto kEnumNames<Offload> = words<3>("none optimizer parameters");

// Recipe by which GEMM operands of the blocks' linear layers are quantized, as in Transformer
// Engine. Scales are per tensor, from the amax of earlier steps (kFp8) or of the tensor itself
// (kFp8Current). Other recipes scale per block of 128 elements (kFp8Block: 1 x 128 of activations
// and gradients, 128 x 128 of weights), 32 (kMxFp8) or 16 elements (kNvFp4). Accumulation is fp32.
// Routers, norms, attention cores, word embeddings and the head keep the plan's dtype.
enum class Precision : std::uint8_t { kNone, kFp8, kFp8Current, kFp8Block, kMxFp8, kNvFp4 };
template <>
inline constexpr auto kEnumNames<Precision> =
    words<6>("none fp8 fp8-current fp8-block mxfp8 nvfp4");

// Order of the parallel dimensions over global ranks, fastest-varying first. The context-parallel
// dimension always follows the tensor-parallel one.
enum class RankOrder : std::uint8_t { kTpDpPp, kTpPpDp };
template <>
inline constexpr auto kEnumNames<RankOrder> = words<2>("tp-dp-pp tp-pp-dp");

struct Plan {
  ParallelDegrees degrees;
  std::int64_t virtual_stages = 1;  // model chunks per pipeline rank
  int zero = 1;                     // ZeRO stage 0..3
  std::int64_t micro_batch = 1;     // sequences per micro-batch and data-parallel rank
  std::int64_t global_batch = 1;    // sequences per step
  bool sequence_parallel = false;
  Recompute recompute = Recompute::kFull;
  std::int64_t recompute_blocks = 0;  // above zero for Recompute::kBlocks only
  AttentionKind attention = AttentionKind::kUnfused;
  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  DType dtype = DType::kBFloat16;
  DType gradient_dtype = DType::kFloat32;  // dtype of gradient accumulation over micro-batches
  Precision precision = Precision::kNone;
  // Weights of linear layers are stored in the 8-bit format of `precision`, and gathered in this
  // format after a sharded optimizer update.
  bool fp8_param_gather = false;
  RankOrder rank_order = RankOrder::kTpDpPp;
  Offload offload = Offload::kNone;
  // Blocks per model chunk, in model order: chunk c runs on pipeline rank c % pp. The length is pp
  // * virtual_stages; the entries sum to the model's layers.
  std::vector<std::int64_t> stage_layers;

  friend bool operator==(const Plan&, const Plan&) = default;
};

inline bool offloads_optimizer(const Plan& plan) { return plan.offload != Offload::kNone; }
inline bool offloads_weights(const Plan& plan) { return plan.offload == Offload::kParameters; }

// Dtype of the operands of the linear layers' GEMMs.
DType product_dtype(const Plan& plan);

std::int64_t gpu_count(const Plan& plan);
// Ranks with the same weights and different tokens: data x context parallel. Gradients are reduced
// and ZeRO shards over these ranks.
std::int64_t data_ranks(const Plan& plan);
// Ranks of one pipeline stage: tp x cp x dp = etp x ep x expert_data_ranks().
std::int64_t stage_ranks(const Plan& plan);
// Ranks that split every expert.
std::int64_t expert_tensor_ranks(const Plan& plan);
// Ranks with the same experts: gradients of experts are reduced, and ZeRO shards experts, over
// these ranks only.
std::int64_t expert_data_ranks(const Plan& plan);
// Whether experts use other rank groups than the rest of a block (parallel folding).
bool folds_experts(const Plan& plan);
// Whether ZeRO shards state: some weights are replicated on several ranks, or shards are in host
// memory.
bool has_replicas(const Plan& plan);
// Micro-batches per data-parallel rank and step.
std::int64_t micro_batches(const Plan& plan);
std::int64_t chunk_count(const Plan& plan);

// Returns the largest valid Plan::recompute_blocks: one less than the blocks of the largest chunk,
// because recomputing all of them is Recompute::kFull. 0: kBlocks is not possible.
std::int64_t most_recomputed_blocks(const std::vector<std::int64_t>& stage_layers);
// Returns how many blocks of a chunk are recomputed in backward. The first blocks of the chunk are
// recomputed.
std::int64_t recomputed_blocks(const Plan& plan, std::int64_t blocks_of_chunk);
// Returns the plan with full recompute if `is_recomputed`, otherwise with none.
Plan with_whole_recompute(Plan plan, bool is_recomputed);

// Returns the blocks per chunk for an even split of the model. With `count_embedding`, embedding
// and head count as one block each, as BLOOM split its 70 + 2 layers into 12 stages of six.
// Remaining blocks go to the middle chunks first. Empty if a chunk would get a negative number.
std::vector<std::int64_t> even_stage_layers(std::int64_t layers, std::int64_t chunks,
                                            bool count_embedding);

// Returns the default split into chunks. The split is even with embedding and head counted as one
// block each, if that divides evenly. If not, the split is even in blocks alone, if these divide
// evenly. If not, embedding and head count, and the middle chunks get one block more.
std::vector<std::int64_t> default_stage_layers(std::int64_t layers, std::int64_t chunks);

// Whether heads, key/value heads and the widths of all parts except experts divide by tp.
bool divides_by_tp(const ModelSpec& model, std::int64_t tp);
// Whether the experts' width divides by etp.
bool divides_by_etp(const ModelSpec& model, std::int64_t etp);
// Whether etp x ep divides the ranks of a stage. With rank order tp-pp-dp, the data-parallel
// replicas of a stage are not contiguous: etp and etp x ep must each divide a replica's ranks or be
// a multiple of them.
bool experts_fit_ranks(const Plan& plan);

// Whether the tensor sizes of one micro-batch, and their sums, fit in 64-bit integers. Plans beyond
// this limit exceed any device.
bool has_countable_tensors(const Plan& plan, const ModelSpec& model);

// Checks that the plan is legal for the model on any hardware. For example: heads, batch, sequence
// and experts divide evenly, stages sum to the model's layers, and the micro-batches of an
// interleaved schedule are a multiple of pp. The error names the rule.
Status validate(const Plan& plan, const ModelSpec& model);

}  // namespace tpsim

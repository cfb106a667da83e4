// A plan: how one model is laid out over the GPUs and how a step is run. Plain values.
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
  std::int64_t cp = 1;  // context: ranks that share every sequence
  std::int64_t ep = 1;  // expert: ranks of a stage that share the experts, beyond dp too
  // Expert-tensor: ranks that share every expert. 0: tp. Experts lie on etp x ep x edp over the
  // ranks that attention cuts into tp x cp x dp (Liu et al. 2025, arXiv 2504.14960).
  std::int64_t etp = 0;
  friend auto operator<=>(const ParallelDegrees&, const ParallelDegrees&) = default;
};

// kBlocks: full for the first Plan::recompute_blocks blocks of every model chunk, none for the
// rest. kOps: every second product of the linear layers and what is no product is computed again,
// attention is not (torchtitan's selective option "op"); predicted only.
enum class Recompute : std::uint8_t { kNone, kSelective, kFull, kBlocks, kOps };
template <>
inline constexpr auto kEnumNames<Recompute> =
    std::to_array<std::string_view>({"none", "selective", "full", "blocks", "ops"});

enum class AttentionKind : std::uint8_t { kUnfused, kFlash };
template <>
inline constexpr auto kEnumNames<AttentionKind> = std::to_array<std::string_view>({"unfused",
                                                                                   "flash"});

enum class ScheduleKind : std::uint8_t { kGpipe, kOneFOneB, kInterleaved };
template <>
inline constexpr auto kEnumNames<ScheduleKind> = std::to_array<std::string_view>({"gpipe", "1f1b",
                                                                                  "interleaved"});

// What lies in the host's memory: nothing, or the optimizer's state, which the host then updates
// (Ren et al. 2021, ZeRO-Offload): gradients go down, updated weights come up.
enum class Offload : std::uint8_t { kNone, kOptimizer };
template <>
inline constexpr auto kEnumNames<Offload> = std::to_array<std::string_view>({"none", "optimizer"});

// How the linear layers of the blocks multiply, after Transformer Engine's recipes: operands are
// rounded to 8 or 4 bits with a scale for every tensor (from maxima of steps before: kFp8, or of
// the tensor itself: kFp8Current), for every 128 elements (kFp8Block: 1 x 128 of activations and
// gradients, 128 x 128 of weights), 32 (kMxFp8) or 16 (kNvFp4); sums are fp32. Routers, norms,
// attention cores, word embeddings and the head keep the plan's dtype.
enum class Precision : std::uint8_t { kNone, kFp8, kFp8Current, kFp8Block, kMxFp8, kNvFp4 };
template <>
inline constexpr auto kEnumNames<Precision> =
    std::to_array<std::string_view>({"none", "fp8", "fp8-current", "fp8-block", "mxfp8", "nvfp4"});

// Which degree varies fastest over consecutive ranks, first letter innermost. Context-parallel
// ranks always follow the tensor-parallel ones.
enum class RankOrder : std::uint8_t { kTpDpPp, kTpPpDp };
template <>
inline constexpr auto kEnumNames<RankOrder> = std::to_array<std::string_view>({"tp-dp-pp",
                                                                               "tp-pp-dp"});

struct Plan {
  ParallelDegrees degrees;
  std::int64_t virtual_stages = 1;  // model chunks per pipeline rank
  int zero = 1;                     // ZeRO stage 0..3
  std::int64_t micro_batch = 1;     // sequences per micro-batch and data-parallel rank
  std::int64_t global_batch = 1;    // sequences per step
  bool sequence_parallel = false;
  Recompute recompute = Recompute::kFull;
  std::int64_t recompute_blocks = 0;  // above zero with Recompute::kBlocks, and with it alone
  AttentionKind attention = AttentionKind::kUnfused;
  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  DType dtype = DType::kBFloat16;
  DType gradient_dtype = DType::kFloat32;  // in which micro-batch gradients add up
  Precision precision = Precision::kNone;
  // Weights of those layers are kept, and gathered after a sharded update, in the recipe's 8 bits.
  bool fp8_param_gather = false;
  RankOrder rank_order = RankOrder::kTpDpPp;
  Offload offload = Offload::kNone;
  // Blocks of every model chunk in model order: chunk c runs on pipeline rank c % pp. Its length is
  // pp * virtual_stages; the entries add up to the model's layers.
  std::vector<std::int64_t> stage_layers;

  friend bool operator==(const Plan&, const Plan&) = default;
};

// What the operands of the linear layers' products are of.
DType product_dtype(const Plan& plan);

std::int64_t gpu_count(const Plan& plan);
// Ranks that hold the same weights, each for other tokens: data x context parallel. Gradients are
// reduced and ZeRO shards over them.
std::int64_t data_ranks(const Plan& plan);
// Ranks of one pipeline stage: tp x cp x dp = etp x ep x expert_data_ranks().
std::int64_t stage_ranks(const Plan& plan);
// Ranks that share every expert.
std::int64_t expert_tensor_ranks(const Plan& plan);
// Ranks that hold the same experts: gradients of experts are reduced, and ZeRO shards them, over
// these alone.
std::int64_t expert_data_ranks(const Plan& plan);
// Whether experts lie otherwise on the ranks than the rest of a block does.
bool folds_experts(const Plan& plan);
// Whether some weights are held by several ranks: what ZeRO shards.
bool has_replicas(const Plan& plan);
// Micro-batches that one data-parallel rank runs in a step.
std::int64_t micro_batches(const Plan& plan);
std::int64_t chunk_count(const Plan& plan);

// With Recompute::kBlocks a plan of these chunks recomputes 1 to so many blocks of each: one fewer
// than the largest chunk has, since all of them is full recompute. 0: none can be.
std::int64_t most_recomputed_blocks(const std::vector<std::int64_t>& stage_layers);
// Of a chunk with so many blocks, those that run forward again in backward: the first ones.
std::int64_t recomputed_blocks(const Plan& plan, std::int64_t blocks_of_chunk);
// The plan of one kind of block alone: fully recomputed or not at all.
Plan with_whole_recompute(Plan plan, bool is_recomputed);

// Blocks per chunk for an even cut of the model. With `count_embedding` the embedding and the
// head each count as one block, as BLOOM cut its 70 + 2 layers into 12 sixes; what is left over
// goes to the middle chunks first. Empty when some chunk would get a negative share.
std::vector<std::int64_t> even_stage_layers(std::int64_t layers, std::int64_t chunks,
                                            bool count_embedding);

// Stages as they are cut when nothing is said: embedding and head count as a block each where that
// divides evenly, else blocks alone where that does, else embedding and head count and the rest
// goes to the middle.
std::vector<std::int64_t> default_stage_layers(std::int64_t layers, std::int64_t chunks);

// Whether heads, key/value heads and the width of what is no expert divide by a tensor-parallel
// degree.
bool divides_by_tp(const ModelSpec& model, std::int64_t tp);
// Whether the experts' width divides by an expert-tensor-parallel degree.
bool divides_by_etp(const ModelSpec& model, std::int64_t etp);
// Whether experts on so many ranks each, shared out over `ep`, can be laid over a stage's ranks.
// Where pipeline stages lie between replicas, an expert group must fill whole replicas or divide
// one.
bool experts_fit_ranks(const Plan& plan);

// Whether the tensors of one micro-batch are small enough to be counted in 64 bits, with room for
// sums of them: no device comes near.
bool has_countable_tensors(const Plan& plan, const ModelSpec& model);

// Everything that makes a plan illegal for a model, whatever the hardware: heads % tp, batch not
// divisible, stages that do not add up, an interleaved schedule whose micro-batches are no multiple
// of pp, a sequence that does not divide into equal parts of the context- or sequence-parallel
// ranks, experts that do not divide by ep, ... The error names the rule.
Status validate(const Plan& plan, const ModelSpec& model);

}  // namespace tpsim

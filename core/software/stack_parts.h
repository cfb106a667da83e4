// Software parts: mechanisms of training software that change time or memory, such as kernels, loss
// head, gradient reduction, overlap. A stack file sets their values; options, plan files and run
// tables override them. docs/adding.md explains how to add a part.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/enum_words.h"
#include "core/base/result.h"
#include "core/plan/plan_settings.h"
#include "core/software/optimizer_choice.h"

namespace tpsim {

// kTorch: plain PyTorch ops, one pass over memory each (sim/layers/plain_kernels.h).
enum class KernelFusion : std::uint8_t { kFused, kTorch };
template <>
inline constexpr auto kEnumNames<KernelFusion> = std::to_array<std::string_view>({"fused",
                                                                                  "torch"});

// kFusedUnscaled: the kernel needs cosines and sines of magnitude 1, as Transformer Engine's does;
// scaled ones (YaRN's attention factor) use plain ops. kTorchComplex: pairs are multiplied as
// complex numbers, which torch.compile does not fuse.
enum class RotaryKernel : std::uint8_t { kFused, kFusedUnscaled, kTorch, kTorchComplex };
template <>
inline constexpr auto kEnumNames<RotaryKernel> =
    std::to_array<std::string_view>({"fused", "fused_unscaled", "torch", "torch_complex"});

// kFusedGelu: GELU with bias is one kernel, SwiGLU is plain ops. kFusedSwiglu: both are fused; a
// clamped SwiGLU and expert biases are partly plain ops (Megatron-Core).
enum class ActivationKernel : std::uint8_t { kFused, kFusedGelu, kFusedSwiglu, kTorch };
template <>
inline constexpr auto kEnumNames<ActivationKernel> =
    std::to_array<std::string_view>({"fused", "fused_gelu", "fused_swiglu", "torch"});

// kBest: the kernel that the profile timed. kTorch and kFusedSoftmax write the scores to memory.
// kMegatron: kBest for flash attention, Megatron-LM's fused softmax for unfused attention. The
// fused softmax requires a multiple of four heads and sequences per rank; other shapes use PyTorch
// ops (fused_softmax.py).
enum class AttentionKernel : std::uint8_t {
  kBest,
  kTorch,
  kFusedSoftmax,
  kFlash1,
  kFlash2,
  kFlash3,
  kCudnn,
  kMegatron
};
template <>
inline constexpr auto kEnumNames<AttentionKernel> = std::to_array<std::string_view>(
    {"best", "torch", "fused_softmax", "flash1", "flash2", "flash3", "cudnn", "megatron"});

// Computation of the loss from the logits.
enum class LossHead : std::uint8_t {
  kVocabParallel,  // every tensor-parallel rank has its part of the vocab: Megatron-LM's ops
  kGathered,       // the tensor group gathers the logits, then as kEager
  kEager,    // PyTorch's cross entropy of an fp32 copy, with log-softmax and gradient in memory
  kChunked,  // part of the tokens at a time
  kFused,    // one kernel overwrites the logits with their gradient: FOAK, Liger without GEMM
  kOnline,   // as kVocabParallel, maxima and sums in one pass, as in reference_model/
  kVocabParallelFused,  // as kVocabParallel with one kernel for the maxima and one for the sums
  kInModel,  // as kEager, but in the model's forward, which frees the logits (transformers)
};
template <>
inline constexpr auto kEnumNames<LossHead> =
    std::to_array<std::string_view>({"vocab_parallel", "gathered", "eager", "chunked", "fused",
                                     "online", "vocab_parallel_fused", "in_model"});

// Gradient reduction over data-parallel ranks.
enum class DataParallelSync : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kSlices,         // DeepSpeed's ZeRO 1: reduces each slice to its owner, which sends new weights
  kBf16Optimizer,  // DeepSpeed's: all-reduce; the optimizer is sharded for any ZeRO stage
  kOwners,  // InternEvo's: all-reduce; each parameter is owned by one rank, which broadcasts it
};
template <>
inline constexpr auto kEnumNames<DataParallelSync> = std::to_array<std::string_view>(
    {"all_reduce", "reduce_scatter", "slices", "bf16_optimizer", "owners"});

// When ZeRO 2 and 3 reduce gradients of several micro-batches.
enum class GradientSync : std::uint8_t {
  kEveryMicroBatch,  // after each, only shards are kept: DeepSpeed, Megatron's FSDP
  kLastMicroBatch,   // whole gradients accumulate until the last, in the plan's dtype: FSDP under
                     // no_sync()
  kLastInPipeline,   // the same only with pipeline stages, in the accumulation dtype: FSDP 2 under
                     // PyTorch's pipelining
};
template <>
inline constexpr auto kEnumNames<GradientSync> =
    std::to_array<std::string_view>({"every_micro_batch", "last_micro_batch", "last_in_pipeline"});

// Dtype in which ZeRO 2 and 3 reduce gradients that backward computes in the plan's dtype.
enum class ReduceDtype : std::uint8_t {
  kAsComputed,  // in the plan's dtype: FSDP under accelerate
  kAsAddedUp,   // in the accumulation dtype of the shards: torchtitan's mixed_precision_reduce
};
template <>
inline constexpr auto kEnumNames<ReduceDtype> = std::to_array<std::string_view>({"as_computed",
                                                                                 "as_added_up"});

// Overlap of tensor-parallel collectives with GEMMs.
enum class TpOverlap : std::uint8_t {
  kNone,
  kBackward,     // dgrad collectives overlap with the wgrad GEMM (Megatron-LM)
  kUserbuffers,  // also a share of the other collectives, in chunks (Transformer Engine)
  kReductions,   // only dgrad reductions overlap with the wgrad GEMM, as in reference_model/
};
template <>
inline constexpr auto kEnumNames<TpOverlap> =
    std::to_array<std::string_view>({"none", "backward", "userbuffers", "reductions"});

// Exchange of keys and values between context-parallel ranks.
enum class CpCommType : std::uint8_t {
  kAllGather,  // one all-gather in sequence order, as in reference_model/
  kP2p,  // Megatron's ring, overlapping attention with the next exchange: sim/layers/context_ring.h
  kTorchRing,  // the ring of PyTorch's context_parallel()
  kA2a,        // all-to-alls between sequence and heads (Ulysses): sim/layers/context_ring.h
};
template <>
inline constexpr auto kEnumNames<CpCommType> =
    std::to_array<std::string_view>({"all_gather", "p2p", "torch_ring", "a2a"});

// Order of a stage's send to and receive from the same neighboring stage.
enum class P2pCalls : std::uint8_t {
  kPaired,  // at once, in both directions (Megatron's send_forward_recv_backward)
  kSerial,  // one after the other; both stages wait each time (DeepSpeed's pipeline engine)
};
template <>
inline constexpr auto kEnumNames<P2pCalls> = std::to_array<std::string_view>({"paired", "serial"});

// Scopes of CUDA graphs, with Megatron-Core's names; a set of bits.
enum class GraphScope : std::uint8_t {
  kAttention,
  kMlp,
  kMoe,
  kMoeRouter,
  kMoePreprocess,  // between router and dispatch
  kMamba,
  kIteration,  // forward and backward of the whole step
};
template <>
inline constexpr auto kEnumNames<GraphScope> = std::to_array<std::string_view>(
    {"attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba", "iteration"});
constexpr std::int64_t bit(GraphScope scope) { return std::int64_t{1} << static_cast<int>(scope); }
inline constexpr std::int64_t kGraphsOfLayers = bit(GraphScope::kIteration) - 1;
inline constexpr std::int64_t kGraphsOfStep = kGraphsOfLayers | bit(GraphScope::kIteration);

// Modules that selective recompute runs again in backward; a set of bits. The reference model runs
// kCoreAttention only; the others are predicted.
enum class RecomputeModule : std::uint8_t {
  kCoreAttention,
  kLayerNorm,
  kExpertActivation,
  kMlp,       // of dense blocks
  kMoe,       // experts with router and dispatch
  kLatentUp,  // up-projections of latent attention
  kSharedExperts,
};
template <>
inline constexpr auto kEnumNames<RecomputeModule> = std::to_array<std::string_view>(
    {"core_attn", "layernorm", "moe_act", "mlp", "moe", "mla_up_proj", "shared_experts"});
constexpr std::int64_t bit(RecomputeModule module) {
  return std::int64_t{1} << static_cast<int>(module);
}

// Whether `set` contains any of `bits`.
constexpr bool holds(std::int64_t set, std::int64_t bits) { return (set & bits) != 0; }

// How tokens reach their experts and return.
enum class Dispatcher : std::uint8_t {
  kAllGather,  // every rank of the group gets all tokens
  kAllToAll,   // a copy of a token per expert
  kDeepEp,     // one copy per node with any of its experts, forwarded over NVLink
  kHybridEp,   // the same with the copy engines of Hopper and Blackwell, using fewer SMs
};
template <>
inline constexpr auto kEnumNames<Dispatcher> =
    std::to_array<std::string_view>({"allgather", "alltoall", "deepep", "hybridep"});

// Permute and unpermute of tokens: a kernel each, or PyTorch ops. kTorch: ops of transformers 5.
// kUnfusedSeq: kUnfused on hidden slices that an all-to-all in the tensor group makes, gathered
// before the experts and scattered after (Megatron-Core before 0.11, alltoall_seq since).
enum class PermuteKernel : std::uint8_t { kFused, kUnfused, kUnfusedSeq, kTorch };
template <>
inline constexpr auto kEnumNames<PermuteKernel> =
    std::to_array<std::string_view>({"fused", "unfused", "unfused_seq", "torch"});

// Tensor that is multiplied by the router weights. kCombine: the experts' results, which are saved
// for backward. kActivation: the input of the down projection.
enum class ExpertWeighting : std::uint8_t { kCombine, kActivation };
template <>
inline constexpr auto kEnumNames<ExpertWeighting> = std::to_array<std::string_view>({"combine",
                                                                                     "activation"});

// Expert load: tokens of the busiest EP rank over the mean, in thousandths, or one of these values.
inline constexpr std::int64_t kNaturalLoad = 0;      // typical of routers with an auxiliary loss
inline constexpr std::int64_t kCountedLoad = 1;      // from the model's expert counts
inline constexpr std::int64_t kBalancedLoad = 1000;  // equal tokens per rank

// Storage of weights between steps in 16-bit training.
enum class MasterWeights : std::uint8_t {
  kCopy,  // 16-bit weights, and an fp32 copy for the optimizer: Megatron, DeepSpeed
  kCast,  // fp32; FSDP casts gathered weights (MixedPrecisionPolicy.param_dtype)
  // fp32; autocast casts operands of GEMMs, norms and residuals stay fp32.
  kAutocast,
  kNone,  // 16 bits only, updated by the optimizer: "pure bf16"
};
template <>
inline constexpr auto kEnumNames<MasterWeights> =
    std::to_array<std::string_view>({"copy", "cast", "autocast", "none"});

// How a rank computes its experts.
enum class ExpertKernel : std::uint8_t {
  kGrouped,    // a GEMM of cuBLAS per expert, in a few streams (Transformer Engine)
  kLooped,     // one expert after the other, each a module with its own launches (transformers 4)
  kOneKernel,  // all experts in one kernel (torch._grouped_mm)
};
template <>
inline constexpr auto kEnumNames<ExpertKernel> =
    std::to_array<std::string_view>({"grouped", "looped", "one_kernel"});

// Capacity of a rank's expert buffers over the mean tokens per rank, in thousandths, or kAnyTokens.
inline constexpr std::int64_t kAnyTokens = 0;  // buffers fit the arriving tokens
// Capacity of the stash over the mean tokens per rank, in thousandths, or kNoStash.
inline constexpr std::int64_t kNoStash = 0;

// Arithmetic of fp32 GEMMs.
enum class Fp32Matmul : std::uint8_t {
  kIeee,  // PyTorch's default
  kTf32,  // NVIDIA's containers (TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1), set_float32_matmul_precision
};
template <>
inline constexpr auto kEnumNames<Fp32Matmul> = std::to_array<std::string_view>({"ieee", "tf32"});

// Number of GPUs over which ZeRO shards, or one of these values. The number includes
// tensor-parallel ranks: 8 GPUs hold four shards at tp 2.
inline constexpr std::int64_t kShardOverAll = 0;
inline constexpr std::int64_t kShardOverNode = -1;

struct SoftwareParts {
  AttentionKernel attention = AttentionKernel::kBest;
  KernelFusion norm = KernelFusion::kFused;
  RotaryKernel rotary = RotaryKernel::kFused;
  ActivationKernel activation = ActivationKernel::kFused;
  KernelFusion residual = KernelFusion::kFused;
  // kFused: the norm's backward kernel adds the residual's gradient. kTorch: a separate op adds it.
  KernelFusion residual_gradient = KernelFusion::kFused;
  KernelFusion optimizer = KernelFusion::kFused;
  LossHead loss_head = LossHead::kVocabParallelFused;
  DataParallelSync sync = DataParallelSync::kReduceScatter;
  std::int64_t shard_group = kShardOverAll;
  TpOverlap tp_overlap = TpOverlap::kNone;
  CpCommType cp_comm_type = CpCommType::kAllGather;
  P2pCalls p2p_calls = P2pCalls::kPaired;
  bool overlap_p2p = false;        // pipeline transfers overlap with compute
  bool blocking_launches = false;  // CUDA_LAUNCH_BLOCKING=1: every launch waits for its kernel
  std::int64_t cuda_graphs = 0;    // bits of GraphScope
  bool compile = false;            // torch.compile: plain ops of a layer become fused kernels
  std::int64_t recompute_modules = bit(RecomputeModule::kCoreAttention);
  DType optimizer_dtype = DType::kFloat32;  // of the optimizer's moments
  Dispatcher dispatcher = Dispatcher::kAllToAll;
  KernelFusion router = KernelFusion::kFused;
  PermuteKernel permute = PermuteKernel::kFused;
  ExpertWeighting expert_weighting = ExpertWeighting::kCombine;
  std::int64_t expert_load = kNaturalLoad;
  // Dispatch and combine of one micro-batch overlap with the compute of another.
  bool ep_overlap = false;
  bool delay_wgrad = false;  // runs wgrad later, to overlap with communication
  // PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: segments grow, so that freed memory merges
  // with adjacent memory and fits other sizes.
  bool expandable_segments = false;
  MasterWeights master_weights = MasterWeights::kCopy;
  ExpertKernel expert_kernel = ExpertKernel::kGrouped;
  Fp32Matmul fp32_matmul = Fp32Matmul::kIeee;
  // Experts' buffers of a fixed size, and a stash to which their activations are packed until
  // backward (Megatron-Core's moe_expert_rank_capacity_factor and moe_paged_stash).
  std::int64_t expert_capacity = kAnyTokens;
  std::int64_t expert_stash = kNoStash;
  // Number of blocks, from the first of every chunk, whose activations are offloaded to the host.
  std::int64_t offload_layers = 0;
};

// Whether the optimizer updates fp32 weights; false only in pure 16-bit training.
constexpr bool updates_fp32_weights(const SoftwareParts& parts, DType dtype) {
  return dtype == DType::kFloat32 || parts.master_weights != MasterWeights::kNone;
}
// Whether both 16-bit and fp32 weights are kept. False if fp32 weights are cast.
constexpr bool keeps_two_copies(const SoftwareParts& parts, DType dtype) {
  return dtype != DType::kFloat32 && parts.master_weights == MasterWeights::kCopy;
}

// Whether selective recompute includes the attention core.
constexpr bool recomputes_core_attention(const SoftwareParts& parts) {
  return holds(parts.recompute_modules, bit(RecomputeModule::kCoreAttention));
}

enum class StackPart : std::uint8_t {
  kAttentionKernel,
  kNormKernel,
  kRotaryKernel,
  kActivationKernel,
  kResidualKernel,
  kResidualGradient,
  kOptimizerKernel,
  kLossHead,
  kLogitsDtype,
  kGradientAccumulation,
  kDataParallelSync,
  kGradientSync,
  kReduceDtype,
  kOverlapGradientReduction,
  kOverlapParameterGather,
  kShardGroup,
  kPipelineSends,
  kP2pCalls,
  kOverlapP2p,
  kTpOverlap,
  kTpRecomputeAllgather,
  kCpCommType,
  kBlockingLaunches,
  kCudaGraphs,
  kCompile,
  kRecomputeModules,
  kOptimizerDtype,
  kDispatcher,
  kRouterKernel,
  kPermute,
  kExpertWeighting,
  kExpertLoad,
  kEpOverlap,
  kDelayWgrad,
  kExpandableSegments,
  kMasterWeights,
  kExpertKernel,
  kFp32Matmul,
  kOptimizerKind,
  kMuonTpMode,
  kExpertCapacity,
  kExpertStash,
  kOffloadLayers,
};
inline constexpr int kStackPartCount = static_cast<int>(StackPart::kOffloadLayers) + 1;

struct StackSpec;

struct PartWord {
  std::int64_t value = 0;
  std::string_view word;
};

struct PartRow {
  StackPart part{};
  std::string_view key;          // in files, tables and Python; the option has '-' for '_'
  std::string_view option = {};  // if another option has the name of `key`
  std::string_view title = {};   // in sentences
  std::string_view help = {};    // for the option
  std::span<const PartWord> words = {};
  bool is_switch = false;       // words "off" and "on", 0 and 1 in tables, false and true in files
  std::int64_t most_count = 0;  // above 0: numbers up to this are valid besides the words
  bool is_set = false;          // words are bits: "attn,moe_router"; a word may stand for several
  bool is_ratio = false;        // numbers >= 1 are valid besides the words, stored in thousandths
  std::int64_t (*get)(const StackSpec&) = nullptr;
  void (*set)(StackSpec&, std::int64_t) = nullptr;
};

// In the order of StackPart.
std::span<const PartRow> part_rows();
const PartRow& row_of(StackPart part);
std::string_view option_of(StackPart part);  // "--norm-kernel"
std::string placeholder_of(const PartRow& row);
// Parses a value; 0 and 1 are valid for a switch. The error names the nearest valid value.
Result<std::int64_t> parse_value(const PartRow& row, std::string_view text);
std::string text_of(const PartRow& row, std::int64_t value);

// Lists of values per part.
using PartLists = std::map<StackPart, std::vector<std::int64_t>>;

// Values that replace those of a stack.
using PartValues = std::map<StackPart, std::int64_t>;
// Returns the stack with these values; a search no longer varies parts with a value.
StackSpec with_parts(StackSpec stack, const PartValues& parts);
// Returns "norm_kernel=torch, shard_group=node"; empty if there are no values.
std::string to_string(const PartValues& parts);

}  // namespace tpsim

// The parts that training software is made of, each a mechanism with a price of its own: which
// kernels it runs, how it takes the loss, how data-parallel ranks share gradients, what runs beside
// what. A stack says which it has; options, plan files and run tables may say otherwise. Described
// once, as the settings of plans are: docs/adding.md says how to add one.
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

namespace tpsim {

// kTorch: the plain ops of PyTorch, one pass over memory each (sim/layers/plain_kernels.h).
enum class KernelFusion : std::uint8_t { kFused, kTorch };
template <>
inline constexpr auto kEnumNames<KernelFusion> = std::to_array<std::string_view>({"fused",
                                                                                  "torch"});

// kFusedUnscaled: the kernel takes cosines and sines of magnitude 1, as Transformer Engine's does;
// scaled ones (YaRN's attention factor) are plain ops. kTorchComplex: pairs are multiplied as
// complex numbers, which torch.compile leaves as it finds them.
enum class RotaryKernel : std::uint8_t { kFused, kFusedUnscaled, kTorch, kTorchComplex };
template <>
inline constexpr auto kEnumNames<RotaryKernel> =
    std::to_array<std::string_view>({"fused", "fused_unscaled", "torch", "torch_complex"});

// kFusedGelu: GELU with its bias is one kernel, SwiGLU is plain ops. kFusedSwiglu: both are one, a
// clamped SwiGLU and biases of experts are some of each (Megatron-Core).
enum class ActivationKernel : std::uint8_t { kFused, kFusedGelu, kFusedSwiglu, kTorch };
template <>
inline constexpr auto kEnumNames<ActivationKernel> =
    std::to_array<std::string_view>({"fused", "fused_gelu", "fused_swiglu", "torch"});

// kBest: what the profile timed. kTorch and kFusedSoftmax write the scores to memory. kMegatron: as
// kBest; where a plan writes the scores, Megatron-LM's softmax, whose kernel takes a multiple of
// four heads and sequences a rank and leaves all others to PyTorch's ops (fused_softmax.py).
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

// Where the loss is taken from the logits.
enum class LossHead : std::uint8_t {
  kVocabParallel,  // every tensor-parallel rank has its part of the vocabulary: Megatron-LM's ops
  kGathered,       // the tensor group gathers them; then as kEager
  kEager,          // PyTorch's cross entropy of an fp32 copy: log-softmax and gradient beside it
  kChunked,        // a part of the tokens at a time
  kFused,          // one kernel that never holds all logits
  kOnline,         // as kVocabParallel, maxima and sums in one pass: as executed here
  kVocabParallelFused,  // as kVocabParallel, a kernel for the maxima and one for the sums
};
template <>
inline constexpr auto kEnumNames<LossHead> = std::to_array<std::string_view>(
    {"vocab_parallel", "gathered", "eager", "chunked", "fused", "online", "vocab_parallel_fused"});

// How data-parallel ranks add up gradients.
enum class DataParallelSync : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kSlices,  // DeepSpeed's ZeRO 1: reduced to the owner of each slice, weights sent from there
  kBf16Optimizer,  // DeepSpeed's: all-reduced, optimizer sharded whatever ZeRO is called
  kOwners,  // InternEvo's: all-reduced; every parameter whole on one rank, which broadcasts it
};
template <>
inline constexpr auto kEnumNames<DataParallelSync> = std::to_array<std::string_view>(
    {"all_reduce", "reduce_scatter", "slices", "bf16_optimizer", "owners"});

// When ZeRO 2 and 3 reduce the gradients of several micro-batches.
enum class GradientSync : std::uint8_t {
  kEveryMicroBatch,  // each leaves its shares: DeepSpeed, Megatron's FSDP
  kLastMicroBatch,   // whole ones add up until then, in the plan's dtype: FSDP under no_sync()
  kLastInPipeline,   // where there are stages, in the dtype of sums: FSDP 2 under PyTorch's
                     // pipelining
};
template <>
inline constexpr auto kEnumNames<GradientSync> =
    std::to_array<std::string_view>({"every_micro_batch", "last_micro_batch", "last_in_pipeline"});

// In which dtype ZeRO 2 and 3 reduce gradients that backward leaves in the plan's.
enum class ReduceDtype : std::uint8_t {
  kAsComputed,  // in that one: FSDP under accelerate
  kAsAddedUp,   // in the one that shares add up in: torchtitan's mixed_precision_reduce
};
template <>
inline constexpr auto kEnumNames<ReduceDtype> = std::to_array<std::string_view>({"as_computed",
                                                                                 "as_added_up"});

// Tensor-parallel collectives beside products.
enum class TpOverlap : std::uint8_t {
  kNone,
  kBackward,     // those of a layer's input gradient beside its other product (Megatron-LM)
  kUserbuffers,  // likewise, and a share of the others cut into pieces (Transformer Engine)
  kReductions,   // sums of input gradients alone, beside weight gradients: as executed here
};
template <>
inline constexpr auto kEnumNames<TpOverlap> =
    std::to_array<std::string_view>({"none", "backward", "userbuffers", "reductions"});

// How the ranks that share a sequence reach each other's keys and values.
enum class CpCommType : std::uint8_t {
  kAllGather,  // all at once, in the order of the sequence: as executed here
  kP2p,  // Megatron's ring, each pass beside the exchange for the next: sim/layers/context_ring.h
  kTorchRing,  // PyTorch's context_parallel(), likewise
};
template <>
inline constexpr auto kEnumNames<CpCommType> = std::to_array<std::string_view>({"all_gather", "p2p",
                                                                                "torch_ring"});

// How a stage sends its result to one neighbour and receives from the same one.
enum class P2pCalls : std::uint8_t {
  kPaired,  // at once, in both directions (Megatron's send_forward_recv_backward)
  kSerial,  // one after the other, both stages waiting each time (DeepSpeed's pipeline engine)
};
template <>
inline constexpr auto kEnumNames<P2pCalls> = std::to_array<std::string_view>({"paired", "serial"});

// What is captured and replayed without the host, as Megatron-Core names the scopes; a set of bits.
enum class GraphScope : std::uint8_t {
  kAttention,
  kMlp,
  kMoe,
  kMoeRouter,
  kMoePreprocess,  // what comes between router and dispatch
  kMamba,
  kIteration,  // forward and backward of the whole step
};
template <>
inline constexpr auto kEnumNames<GraphScope> = std::to_array<std::string_view>(
    {"attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba", "iteration"});
constexpr std::int64_t bit(GraphScope scope) { return std::int64_t{1} << static_cast<int>(scope); }
inline constexpr std::int64_t kGraphsOfLayers = bit(GraphScope::kIteration) - 1;
inline constexpr std::int64_t kGraphsOfStep = kGraphsOfLayers | bit(GraphScope::kIteration);

// Modules whose results selective recompute makes again in backward; a set of bits. Only the first
// is executed, the others are predicted.
enum class RecomputeModule : std::uint8_t {
  kCoreAttention,
  kLayerNorm,
  kExpertActivation,
  kMlp,       // of blocks without experts
  kMoe,       // experts with router and dispatch
  kLatentUp,  // latent attention's projections up
  kSharedExperts,
};
template <>
inline constexpr auto kEnumNames<RecomputeModule> = std::to_array<std::string_view>(
    {"core_attn", "layernorm", "moe_act", "mlp", "moe", "mla_up_proj", "shared_experts"});
constexpr std::int64_t bit(RecomputeModule module) {
  return std::int64_t{1} << static_cast<int>(module);
}

// Whether a set of such bits holds any of the others.
constexpr bool holds(std::int64_t set, std::int64_t bits) { return (set & bits) != 0; }

// How tokens reach their experts and come back.
enum class Dispatcher : std::uint8_t {
  kAllGather,  // every rank of the group gets all tokens
  kAllToAll,   // a copy of a token for each of its experts
  kDeepEp,     // one copy for each node that has any of them, passed on over NVLink
  kHybridEp,   // the same by Hopper's and Blackwell's copy engines, with fewer processors
};
template <>
inline constexpr auto kEnumNames<Dispatcher> =
    std::to_array<std::string_view>({"allgather", "alltoall", "deepep", "hybridep"});

// Tokens sorted by expert before they are multiplied, and put back: one kernel each, or PyTorch's.
// kUnfusedSeq: as kUnfused, of slices of the hidden dimension: the tensor group exchanges tokens
// for slices before, and gathers and scatters along that dimension after (Megatron-Core before
// 0.11, alltoall_seq since then).
enum class PermuteKernel : std::uint8_t { kFused, kUnfused, kUnfusedSeq };
template <>
inline constexpr auto kEnumNames<PermuteKernel> =
    std::to_array<std::string_view>({"fused", "unfused", "unfused_seq"});

// Where the weights of a token's experts multiply: the experts' results when they are combined,
// which are kept for that, or what goes into the down projection.
enum class ExpertWeighting : std::uint8_t { kCombine, kActivation };
template <>
inline constexpr auto kEnumNames<ExpertWeighting> = std::to_array<std::string_view>({"combine",
                                                                                     "activation"});

// Tokens of the busiest rank over the mean, in thousandths, or by words.
inline constexpr std::int64_t kNaturalLoad = 0;      // as routers with an auxiliary loss choose
inline constexpr std::int64_t kCountedLoad = 1;      // as the model's counts say
inline constexpr std::int64_t kBalancedLoad = 1000;  // forced

// In which dtype weights of 16-bit training are kept between steps.
enum class MasterWeights : std::uint8_t {
  kCopy,  // in 16 bits, with an fp32 copy that the optimizer updates: Megatron, DeepSpeed
  kCast,  // in fp32; FSDP casts what it gathers (MixedPrecisionPolicy.param_dtype)
  // In fp32; autocast casts operands of products, norms and residuals stay in fp32.
  kAutocast,
  kNone,  // in 16 bits, which the optimizer updates: "pure bf16"
};
template <>
inline constexpr auto kEnumNames<MasterWeights> =
    std::to_array<std::string_view>({"copy", "cast", "autocast", "none"});

// How a rank multiplies the tokens of its experts.
enum class ExpertKernel : std::uint8_t {
  kGrouped,  // all experts in one kernel, or in a few streams
  kLooped,   // one expert after the other, each a module with its own launches (transformers 4)
};
template <>
inline constexpr auto kEnumNames<ExpertKernel> = std::to_array<std::string_view>({"grouped",
                                                                                  "looped"});

// Arithmetic of fp32 GEMMs.
enum class Fp32Matmul : std::uint8_t {
  kIeee,  // PyTorch's default
  kTf32,  // NVIDIA's containers (TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1), set_float32_matmul_precision
};
template <>
inline constexpr auto kEnumNames<Fp32Matmul> = std::to_array<std::string_view>({"ieee", "tf32"});

// GPUs over which ZeRO shards: all, those of a node, or so many, with tensor-parallel ranks counted
// as a node counts them: 8 GPUs hold four shards at tp 2.
inline constexpr std::int64_t kShardOverAll = 0;
inline constexpr std::int64_t kShardOverNode = -1;

struct SoftwareParts {
  AttentionKernel attention = AttentionKernel::kBest;
  KernelFusion norm = KernelFusion::kFused;
  RotaryKernel rotary = RotaryKernel::kFused;
  ActivationKernel activation = ActivationKernel::kFused;
  KernelFusion residual = KernelFusion::kFused;
  // What bypassed a norm joins its gradient inside the norm's kernel, or in an op of its own, as
  // PyTorch's autograd has it.
  KernelFusion residual_gradient = KernelFusion::kFused;
  KernelFusion optimizer = KernelFusion::kFused;
  LossHead loss_head = LossHead::kVocabParallelFused;
  DataParallelSync sync = DataParallelSync::kReduceScatter;
  std::int64_t shard_group = kShardOverAll;
  TpOverlap tp_overlap = TpOverlap::kNone;
  CpCommType cp_comm_type = CpCommType::kAllGather;
  P2pCalls p2p_calls = P2pCalls::kPaired;
  bool overlap_p2p = false;        // pipeline transfers run beside compute
  bool blocking_launches = false;  // CUDA_LAUNCH_BLOCKING=1: every launch waits for its kernel
  std::int64_t cuda_graphs = 0;    // bits of GraphScope
  bool compile = false;            // torch.compile: plain ops of a layer become fused kernels
  std::int64_t recompute_modules = bit(RecomputeModule::kCoreAttention);
  DType optimizer_dtype = DType::kFloat32;  // of Adam's two
  Dispatcher dispatcher = Dispatcher::kAllToAll;
  KernelFusion router = KernelFusion::kFused;
  PermuteKernel permute = PermuteKernel::kFused;
  ExpertWeighting expert_weighting = ExpertWeighting::kCombine;
  std::int64_t expert_load = kNaturalLoad;
  // Dispatch and combine of one micro-batch beside the compute of another.
  bool ep_overlap = false;
  bool delay_wgrad = false;  // more compute to hide them behind
  // The framework's allocator lets segments grow, so that what is freed merges with its neighbours
  // and fits what other tensors ask for (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True).
  bool expandable_segments = false;
  MasterWeights master_weights = MasterWeights::kCopy;
  ExpertKernel expert_kernel = ExpertKernel::kGrouped;
  Fp32Matmul fp32_matmul = Fp32Matmul::kIeee;
};

// Whether the optimizer updates fp32 weights: always, but in pure 16-bit training.
constexpr bool updates_fp32_weights(const SoftwareParts& parts, DType dtype) {
  return dtype == DType::kFloat32 || parts.master_weights != MasterWeights::kNone;
}
// Whether 16-bit weights are kept beside the fp32 ones. They are not if fp32 weights are cast.
constexpr bool keeps_two_copies(const SoftwareParts& parts, DType dtype) {
  return dtype != DType::kFloat32 && parts.master_weights == MasterWeights::kCopy;
}

// Whether selective recompute runs the attention core again.
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
};
inline constexpr int kStackPartCount = static_cast<int>(StackPart::kFp32Matmul) + 1;

struct StackSpec;

struct PartWord {
  std::int64_t value = 0;
  std::string_view word;
};

struct PartRow {
  StackPart part{};
  std::string_view key;  // in files, tables and Python; with '-' for '_' it names the option
  std::string_view option = {};  // where that name is taken
  std::string_view title = {};   // in sentences
  std::string_view help = {};    // of the option
  std::span<const PartWord> words = {};
  bool is_switch = false;       // words "off" and "on", 0 and 1 in tables, false and true in files
  std::int64_t most_count = 0;  // above 0: a number up to this stands beside the words
  bool is_set = false;          // words are bits: "attn,moe_router"; one may stand for several
  bool is_ratio = false;        // a number of at least 1 stands beside the words, in thousandths
  std::int64_t (*get)(const StackSpec&) = nullptr;
  void (*set)(StackSpec&, std::int64_t) = nullptr;
};

// In the order of StackPart.
std::span<const PartRow> part_rows();
const PartRow& row_of(StackPart part);
std::string_view option_of(StackPart part);  // "--norm-kernel"
std::string placeholder_of(const PartRow& row);
// The value that `text` names, also 0 and 1 for a switch; an error names the nearest valid one.
Result<std::int64_t> parse_value(const PartRow& row, std::string_view text);
std::string text_of(const PartRow& row, std::int64_t value);

// Several values for some of the parts.
using PartLists = std::map<StackPart, std::vector<std::int64_t>>;

// What is asked for in place of a stack's own parts.
using PartValues = std::map<StackPart, std::int64_t>;
// The stack with these values; a part that has one is no longer open to a search.
StackSpec with_parts(StackSpec stack, const PartValues& parts);
// "norm_kernel=torch, shard_group=node"; empty where nothing differs.
std::string to_string(const PartValues& parts);

}  // namespace tpsim

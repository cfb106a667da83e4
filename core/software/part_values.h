// Values of the software parts (core/software/stack_parts.h), with their words in files and
// options.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/base/enum_words.h"

namespace tpsim {

// kTorch: plain PyTorch ops, one pass over memory each (lowering/passes/unfused_kernels.h).
enum class KernelFusion : std::uint8_t { kFused, kTorch };
template <>
inline constexpr auto kEnumNames<KernelFusion> = words<2>("fused torch");

// kFusedUnscaled: the kernel needs cosines and sines of magnitude 1, as Transformer Engine's does;
// scaled ones (YaRN's attention factor) use plain ops. kTorchComplex: pairs are multiplied as
// complex numbers, which torch.compile does not fuse.
enum class RotaryKernel : std::uint8_t { kFused, kFusedUnscaled, kTorch, kTorchComplex };
template <>
inline constexpr auto kEnumNames<RotaryKernel> =
    words<4>("fused fused_unscaled torch torch_complex");

// kFusedGelu: GELU with bias is one kernel, SwiGLU is plain ops. kFusedSwiglu: both are fused; a
// clamped SwiGLU and expert biases are partly plain ops (Megatron-Core).
enum class ActivationKernel : std::uint8_t { kFused, kFusedGelu, kFusedSwiglu, kTorch };
template <>
inline constexpr auto kEnumNames<ActivationKernel> =
    words<4>("fused fused_gelu fused_swiglu torch");

// kBest: the kernel that the profile timed. kTorch and kFusedSoftmax write the scores to memory.
// kMegatron: kBest for flash attention, Megatron-LM's fused softmax for unfused attention. The
// fused softmax requires a multiple of four heads and sequences per rank; other shapes use PyTorch
// ops (fused_softmax.py). kFlex: PyTorch's FlexAttention, compiled by Triton.
enum class AttentionKernel : std::uint8_t {
  kBest,
  kTorch,
  kFusedSoftmax,
  kFlash1,
  kFlash2,
  kFlash3,
  kCudnn,
  kMegatron,
  kFlex
};
template <>
inline constexpr auto kEnumNames<AttentionKernel> =
    words<9>("best torch fused_softmax flash1 flash2 flash3 cudnn megatron flex");

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
    words<8>("vocab_parallel gathered eager chunked fused online vocab_parallel_fused in_model");

// Dtype of the logits that the loss reads: the plan's, or an fp32 copy.
enum class LogitsDtype : std::uint8_t { kPlan, kFloat32 };
template <>
inline constexpr auto kEnumNames<LogitsDtype> = words<2>("plan fp32");

// How weight gradients of several micro-batches add up.
enum class GradientAccumulation : std::uint8_t {
  // Gradients are computed in the plan's dtype and added later. A buffer of the same dtype is
  // updated at the end of the layer's backward. A wider buffer is updated at the end of the
  // micro-batch's backward, through a widened copy of each tensor.
  kSeparate,
  kFused,        // the wgrad GEMM adds to the buffer
  kOverwriting,  // as kFused, but GEMMs of the first micro-batch overwrite the buffer: only
                 // gradients from reductions or lookups need clearing
};
template <>
inline constexpr auto kEnumNames<GradientAccumulation> = words<3>("separate fused overwriting");

// Activations that pipeline stages send. kScattered: each tensor-parallel rank sends its part, and
// the next stage gathers the parts (Narayanan et al. 2021, section 4.1).
enum class PipelineSends : std::uint8_t { kWhole, kScattered };
template <>
inline constexpr auto kEnumNames<PipelineSends> = words<2>("whole scattered");

// Gradient reduction over data-parallel ranks.
enum class DataParallelSync : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kSlices,         // DeepSpeed's ZeRO 1: reduces each slice to its owner, which sends new weights
  kBf16Optimizer,  // DeepSpeed's: all-reduce; the optimizer is sharded for any ZeRO stage
  kOwners,  // InternEvo's: all-reduce; each parameter is owned by one rank, which broadcasts it
};
template <>
inline constexpr auto kEnumNames<DataParallelSync> =
    words<5>("all_reduce reduce_scatter slices bf16_optimizer owners");

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
    words<3>("every_micro_batch last_micro_batch last_in_pipeline");

// Dtype in which ZeRO 2 and 3 reduce gradients that backward computes in the plan's dtype.
enum class ReduceDtype : std::uint8_t {
  kAsComputed,  // in the plan's dtype: FSDP under accelerate
  kAsAddedUp,   // in the accumulation dtype of the shards: torchtitan's mixed_precision_reduce
};
template <>
inline constexpr auto kEnumNames<ReduceDtype> = words<2>("as_computed as_added_up");

// Overlap of tensor-parallel collectives with GEMMs.
enum class TpOverlap : std::uint8_t {
  kNone,
  kBackward,     // dgrad collectives overlap with the wgrad GEMM (Megatron-LM)
  kUserbuffers,  // also a share of the other collectives, in chunks (Transformer Engine)
  kReductions,   // only dgrad reductions overlap with the wgrad GEMM, as in reference_model/
};
template <>
inline constexpr auto kEnumNames<TpOverlap> = words<4>("none backward userbuffers reductions");

// Exchange of keys and values between context-parallel ranks.
enum class CpCommType : std::uint8_t {
  kAllGather,  // one all-gather in sequence order, as in reference_model/
  kP2p,        // Megatron's ring, overlapping attention with the next exchange:
               // lowering/passes/context_exchange.h
  kTorchRing,  // the ring of PyTorch's context_parallel()
  kA2a,  // all-to-alls between sequence and heads (Ulysses): lowering/passes/context_exchange.h
};
template <>
inline constexpr auto kEnumNames<CpCommType> = words<4>("all_gather p2p torch_ring a2a");

// How long ZeRO 3 keeps gathered weights.
enum class GatheredUnits : std::uint8_t {
  kInUse,  // while their layer runs
  // FSDP: the next block is gathered while a layer runs, and the last block's gradients are still
  // being reduced. Head and final norm are a unit, gathered until their backward has ended.
  kHead,
  // The same, with embedding, final norm and head in one unit. It is gathered until all backward
  // has ended, since the embedding's gradient comes last.
  kRoot,
};
template <>
inline constexpr auto kEnumNames<GatheredUnits> = words<3>("in_use head root");

// Order of a stage's send to and receive from the same neighboring stage.
enum class P2pCalls : std::uint8_t {
  kPaired,  // at once, in both directions (Megatron's send_forward_recv_backward)
  kSerial,  // one after the other; both stages wait each time (DeepSpeed's pipeline engine)
};
template <>
inline constexpr auto kEnumNames<P2pCalls> = words<2>("paired serial");

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
inline constexpr auto kEnumNames<GraphScope> =
    words<7>("attn mlp moe moe_router moe_preprocess mamba iteration");
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
inline constexpr auto kEnumNames<RecomputeModule> =
    words<7>("core_attn layernorm moe_act mlp moe mla_up_proj shared_experts");
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
inline constexpr auto kEnumNames<Dispatcher> = words<4>("allgather alltoall deepep hybridep");

// Permute and unpermute of tokens: a kernel each, or PyTorch ops. kTorch: ops of transformers 5.
// kUnfusedSeq: kUnfused on hidden slices that an all-to-all in the tensor group makes, gathered
// before the experts and scattered after (Megatron-Core before 0.11, alltoall_seq since).
enum class PermuteKernel : std::uint8_t { kFused, kUnfused, kUnfusedSeq, kTorch };
template <>
inline constexpr auto kEnumNames<PermuteKernel> = words<4>("fused unfused unfused_seq torch");

// Tensor that is multiplied by the router weights. kCombine: the experts' results, which are saved
// for backward. kActivation: the input of the down projection.
enum class ExpertWeighting : std::uint8_t { kCombine, kActivation };
template <>
inline constexpr auto kEnumNames<ExpertWeighting> = words<2>("combine activation");

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
inline constexpr auto kEnumNames<MasterWeights> = words<4>("copy cast autocast none");

// How a rank computes its experts.
enum class ExpertKernel : std::uint8_t {
  kGrouped,    // a GEMM of cuBLAS per expert, in a few streams (Transformer Engine)
  kLooped,     // one expert after the other, each a module with its own launches (transformers 4)
  kOneKernel,  // all experts in one kernel (torch._grouped_mm)
};
template <>
inline constexpr auto kEnumNames<ExpertKernel> = words<3>("grouped looped one_kernel");

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
inline constexpr auto kEnumNames<Fp32Matmul> = words<2>("ieee tf32");

// Implementation of AdamW on the CPU, for an offloaded optimizer (core/software/cpu_optimizers.h).
enum class CpuOptimizer : std::uint8_t { kDeepSpeed, kMegatron, kTorch, kNative };
template <>
inline constexpr auto kEnumNames<CpuOptimizer> = words<4>("deepspeed megatron torch native");

// Number of GPUs over which ZeRO shards, or one of these values. The number includes
// tensor-parallel ranks: 8 GPUs hold four shards at tp 2.
inline constexpr std::int64_t kShardOverAll = 0;
inline constexpr std::int64_t kShardOverNode = -1;

}  // namespace tpsim

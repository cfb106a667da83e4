// Software parts: mechanisms of training software that change time or memory, such as kernels, loss
// head, gradient reduction, overlap. A stack file sets their values; options, plan files and run
// tables override them. docs/adding.md explains how to add a part.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/plan/field.h"
#include "core/software/optimizer_choice.h"
#include "core/software/part_values.h"

namespace tpsim {

struct SoftwareParts {
  AttentionKernel attention_kernel = AttentionKernel::kBest;
  KernelFusion norm_kernel = KernelFusion::kFused;
  RotaryKernel rotary_kernel = RotaryKernel::kFused;
  ActivationKernel activation_kernel = ActivationKernel::kFused;
  KernelFusion residual_kernel = KernelFusion::kFused;
  // kFused: the norm's backward kernel adds the residual's gradient. kTorch: a separate op adds it.
  KernelFusion residual_gradient = KernelFusion::kFused;
  KernelFusion optimizer_kernel = KernelFusion::kFused;
  LossHead loss_head = LossHead::kVocabParallelFused;
  DataParallelSync data_parallel_sync = DataParallelSync::kReduceScatter;
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
  KernelFusion router_kernel = KernelFusion::kFused;
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
  CpuOptimizer cpu_optimizer = CpuOptimizer::kMegatron;  // with Offload::kOptimizer
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
  kCpuOptimizer,
  kFinetune,
  kLoraRank,
  kLoraAlpha,
  kLoraDropout,
  kLoraTargets,
  kLoraScaling,
  kLoraDtype,
  kLoraKernel,
  kBaseDtype,
  kDoubleQuantization,
  kTrainedParts,
  kTrainedLayers,
};
inline constexpr int kStackPartCount = static_cast<int>(StackPart::kTrainedLayers) + 1;

// Whether the part says which weights are trained. The user of a run knows these parts.
constexpr bool is_of_adapters(StackPart part) { return part >= StackPart::kFinetune; }

struct StackSpec;

struct PartRow : Field<StackSpec> {
  StackPart part{};
};

// In the order of StackPart.
std::span<const PartRow> part_rows();
const PartRow& row_of(StackPart part);
std::string_view option_of(StackPart part);  // "--norm-kernel"
// Returns the parts that change a term of the step.
std::vector<StackPart> parts_of(StepTerm term, const StackSpec& stack);
// Lists of values per part.
using PartLists = std::map<StackPart, std::vector<std::int64_t>>;

// Values that replace those of a stack.
using PartValues = std::map<StackPart, std::int64_t>;
// Returns the stack with these values; a search no longer varies parts with a value.
StackSpec with_parts(StackSpec stack, const PartValues& parts);
// Returns "norm_kernel=torch, shard_group=node"; empty if there are no values.
std::string to_string(const PartValues& parts);

}  // namespace tpsim

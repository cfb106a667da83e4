// The table of software parts, and with_parts().
#include <type_traits>
#include <utility>

#include "core/software/stack_parts.h"
#include "core/software/stack_spec.h"

namespace tpsim {
namespace {

template <class E, std::int64_t value_of(E)>
constexpr auto words_of() {
  std::array<PartWord, kEnumNames<E>.size()> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = {value_of(static_cast<E>(i)), kEnumNames<E>[i]};
  }
  return words;
}

template <class E>
constexpr std::int64_t number_of(E value) {
  return static_cast<std::int64_t>(value);
}
template <class E>
constexpr auto kEnumWords = words_of<E, number_of<E>>();
// Values of cuda_graphs: named sets, then the scopes of a layer. The last scope, kIteration, is
// valid only in the set full_iteration.
constexpr auto kGraphs = [] {
  constexpr auto kScopes = words_of<GraphScope, bit>();
  std::array<PartWord, 3 + kScopes.size() - 1> words = {
      {{0, "none"}, {kGraphsOfLayers, "full"}, {kGraphsOfStep, "full_iteration"}}};
  for (std::size_t i = 3; i < words.size(); ++i) words[i] = kScopes[i - 3];
  return words;
}();
constexpr auto kModules = words_of<RecomputeModule, bit>();
constexpr auto kMoments = std::to_array<PartWord>(
    {{static_cast<std::int64_t>(DType::kFloat32), name_of(DType::kFloat32)},
     {static_cast<std::int64_t>(DType::kBFloat16), name_of(DType::kBFloat16)}});
constexpr auto kLoads = std::to_array<PartWord>(
    {{kNaturalLoad, "natural"}, {kBalancedLoad, "balanced"}, {kCountedLoad, "counted"}});
constexpr auto kSwitch = std::to_array<PartWord>({{0, "off"}, {1, "on"}});
constexpr auto kLogits = std::to_array<PartWord>({{0, "plan"}, {1, "fp32"}});
constexpr auto kSums = std::to_array<PartWord>({{0, "separate"}, {1, "fused"}, {2, "overwriting"}});
constexpr auto kSends = std::to_array<PartWord>({{0, "whole"}, {1, "scattered"}});
constexpr auto kShards =
    std::to_array<PartWord>({{kShardOverAll, "all"}, {kShardOverNode, "node"}});
constexpr std::int64_t kMostRanks = 1 << 20;
constexpr auto kCapacities = std::to_array<PartWord>({{kAnyTokens, "unbounded"}});
constexpr auto kStashes = std::to_array<PartWord>({{kNoStash, "off"}});
constexpr auto kOffloaded = std::to_array<PartWord>({{0, "none"}});
constexpr std::int64_t kMostLayers = 1 << 12;

template <class Class, class Value>
constexpr bool is_trained(Value Class::*) {
  return std::is_same_v<Class, TrainingOptions>;
}

// Returns a member of the stack's parts or of its training options.
template <auto member, class Stack>
constexpr auto& value_in(Stack& stack) {
  if constexpr (is_trained(member)) {
    return stack.training.*member;
  } else {
    return stack.parts.*member;
  }
}

// Adds the access to `member` to a row. A bool becomes a switch. An enumerator gets the names of
// its values as words, unless the row states words.
template <auto member>
PartRow held(PartRow row) {
  using Value = std::remove_reference_t<decltype(value_in<member>(std::declval<StackSpec&>()))>;
  row.is_switch = std::is_same_v<Value, bool> && row.words.empty();
  if (row.is_switch) row.words = kSwitch;
  if constexpr (HasEnumNames<Value>) {
    if (row.words.empty()) row.words = kEnumWords<Value>;
  }
  if (row.get == nullptr) {
    row.get = [](const StackSpec& stack) {
      return static_cast<std::int64_t>(value_in<member>(stack));
    };
  }
  if (row.set == nullptr) {
    row.set = [](StackSpec& stack, std::int64_t value) {
      value_in<member>(stack) = static_cast<Value>(value);
    };
  }
  return row;
}

// Also sets the gradient reduction of the executed program.
void set_sync(StackSpec& stack, std::int64_t value) {
  stack.parts.sync = static_cast<DataParallelSync>(value);
  const bool whole = stack.parts.sync == DataParallelSync::kAllReduce ||
                     stack.parts.sync == DataParallelSync::kBf16Optimizer;
  stack.training.gradient_reduction =
      whole ? GradientReduction::kAllReduce : GradientReduction::kReduceScatter;
}
void set_loss(StackSpec& stack, std::int64_t value) {
  stack.parts.loss_head = static_cast<LossHead>(value);
  stack.training.online_loss = stack.parts.loss_head == LossHead::kOnline;
}
void set_overlap(StackSpec& stack, std::int64_t value) {
  stack.parts.tp_overlap = static_cast<TpOverlap>(value);
  stack.training.overlap_tensor_reduction = value == static_cast<int>(TpOverlap::kReductions);
}
std::int64_t accumulation_of(const StackSpec& stack) {
  if (overwrites_gradients(stack.training)) return 2;
  return stack.training.fused_gradient_accumulation ? 1 : 0;
}
void set_accumulation(StackSpec& stack, std::int64_t value) {
  stack.training.fused_gradient_accumulation = value >= 1;
  stack.training.overwritten_gradients = value == 2;
}

using S = SoftwareParts;
using T = TrainingOptions;
const std::array<PartRow, kStackPartCount> kRows = {{
    held<&S::attention>({.part = StackPart::kAttentionKernel,
                         .key = "attention_kernel",
                         .title = "attention kernel",
                         .help = "attention kernel; best: the kernel timed in the profile"}),
    held<&S::norm>({.part = StackPart::kNormKernel,
                    .key = "norm_kernel",
                    .title = "norm kernel",
                    .help = "RMSNorm: one fused kernel or unfused PyTorch ops"}),
    held<&S::rotary>({.part = StackPart::kRotaryKernel,
                      .key = "rotary_kernel",
                      .title = "rotary kernel",
                      .help = "rotary embedding; fused_unscaled: fused except with YaRN"}),
    held<&S::activation>({.part = StackPart::kActivationKernel,
                          .key = "activation_kernel",
                          .title = "activation kernel",
                          .help = "bias+GELU and SwiGLU: fused or unfused"}),
    held<&S::residual>({.part = StackPart::kResidualKernel,
                        .key = "residual_kernel",
                        .title = "residual kernel",
                        .help = "bias+dropout+residual: fused or unfused"}),
    held<&S::residual_gradient>(
        {.part = StackPart::kResidualGradient,
         .key = "residual_gradient",
         .title = "residual's gradient",
         .help = "residual's gradient: added in the norm kernel or separately"}),
    held<&S::optimizer>({.part = StackPart::kOptimizerKernel,
                         .key = "optimizer_kernel",
                         .title = "optimizer kernel",
                         .help = "AdamW: one fused kernel or foreach ops"}),
    held<&S::loss_head>({.part = StackPart::kLossHead,
                         .key = "loss_head",
                         .title = "loss head",
                         .help = "cross-entropy implementation",
                         .set = set_loss}),
    held<&T::wide_logits>({.part = StackPart::kLogitsDtype,
                           .key = "logits_dtype",
                           .title = "dtype of the logits",
                           .help = "dtype of the logits: the plan's, or an fp32 copy",
                           .words = kLogits}),
    held<&T::fused_gradient_accumulation>(
        {.part = StackPart::kGradientAccumulation,
         .key = "gradient_accumulation",
         .title = "gradient accumulation",
         .help = "wgrad accumulation: separate, in the GEMM, or overwrites first",
         .words = kSums,
         .get = accumulation_of,
         .set = set_accumulation}),
    held<&S::sync>({.part = StackPart::kDataParallelSync,
                    .key = "data_parallel_sync",
                    .title = "data-parallel synchronization",
                    .help = "gradient reduction over data-parallel ranks",
                    .set = set_sync}),
    held<&T::gradient_sync>({.part = StackPart::kGradientSync,
                             .key = "gradient_sync",
                             .title = "gradient synchronization",
                             .help = "when ZeRO 2 and 3 reduce-scatter the gradients of a step"}),
    held<&T::reduce_dtype>({.part = StackPart::kReduceDtype,
                            .key = "reduce_dtype",
                            .title = "dtype of reduction",
                            .help = "dtype of gradient reduction with ZeRO 2 and 3"}),
    held<&T::overlap_gradient_reduction>(
        {.part = StackPart::kOverlapGradientReduction,
         .key = "overlap_gradient_reduction",
         .title = "overlap of gradient reduction",
         .help = "overlap gradient reduction with the last backward"}),
    held<&T::overlap_parameter_gather>(
        {.part = StackPart::kOverlapParameterGather,
         .key = "overlap_parameter_gather",
         .title = "overlap of parameter gather",
         .help = "overlap the weight all-gather with the next forward"}),
    held<&S::shard_group>({.part = StackPart::kShardGroup,
                           .key = "shard_group",
                           .title = "shard group",
                           .help = "GPUs per ZeRO shard group: all, one node, or N (HSDP)",
                           .words = kShards,
                           .most_count = kMostRanks}),
    held<&T::scatter_gather_transfers>(
        {.part = StackPart::kPipelineSends,
         .key = "pipeline_sends",
         .title = "pipeline sends",
         .help = "pipeline P2P: whole activations, or one slice per TP rank",
         .words = kSends}),
    held<&S::p2p_calls>({.part = StackPart::kP2pCalls,
                         .key = "p2p_calls",
                         .title = "pipeline calls",
                         .help = "pipeline P2P: send and receive batched, or one after the other"}),
    held<&S::overlap_p2p>({.part = StackPart::kOverlapP2p,
                           .key = "overlap_p2p",
                           .title = "overlap of pipeline sends",
                           .help = "overlap pipeline P2P with compute"}),
    held<&S::tp_overlap>({.part = StackPart::kTpOverlap,
                          .key = "tp_overlap",
                          .title = "tensor-parallel overlap",
                          .help = "overlap tensor-parallel collectives with GEMMs",
                          .set = set_overlap}),
    held<&T::tp_recompute_allgather>(
        {.part = StackPart::kTpRecomputeAllgather,
         .key = "tp_recompute_allgather",
         .title = "recomputed all-gather",
         .help = "all-gather sequence-parallel inputs again in backward"}),
    held<&S::cp_comm_type>({.part = StackPart::kCpCommType,
                            .key = "cp_comm_type",
                            .title = "exchange of keys and values",
                            .help = "exchange of keys and values between context-parallel ranks"}),
    held<&S::blocking_launches>(
        {.part = StackPart::kBlockingLaunches,
         .key = "blocking_launches",
         .title = "blocking launches",
         .help = "CUDA_LAUNCH_BLOCKING=1: the host waits after each launch"}),
    held<&S::cuda_graphs>(
        {.part = StackPart::kCudaGraphs,
         .key = "cuda_graphs",
         .option = "cuda-graph-scope",
         .title = "CUDA graphs",
         .help = "modules captured in CUDA graphs; plan tries sets: attn/attn,moe_router",
         .words = kGraphs,
         .is_set = true}),
    held<&S::compile>({.part = StackPart::kCompile,
                       .key = "compile",
                       .title = "torch.compile",
                       .help = "torch.compile of the layers: fuses their elementwise ops"}),
    held<&S::recompute_modules>(
        {.part = StackPart::kRecomputeModules,
         .key = "recompute_modules",
         .title = "recomputed modules",
         .help = "modules that selective recompute covers; plan tries sets: mlp/moe_act",
         .words = kModules,
         .is_set = true}),
    held<&S::optimizer_dtype>({.part = StackPart::kOptimizerDtype,
                               .key = "optimizer_dtype",
                               .title = "dtype of the optimizer's moments",
                               .help = "dtype of the optimizer's moments",
                               .words = kMoments}),
    held<&S::dispatcher>({.part = StackPart::kDispatcher,
                          .key = "dispatcher",
                          .title = "dispatcher",
                          .help = "MoE token dispatcher"}),
    held<&S::router>({.part = StackPart::kRouterKernel,
                      .key = "router_kernel",
                      .title = "router kernel",
                      .help = "MoE router: fused or unfused"}),
    held<&S::permute>({.part = StackPart::kPermute,
                       .key = "permute",
                       .title = "permutation",
                       .help = "MoE permute and unpermute: fused, or PyTorch ops"}),
    held<&S::expert_weighting>(
        {.part = StackPart::kExpertWeighting,
         .key = "expert_weighting",
         .title = "weighting of experts",
         .help = "router probabilities scale expert outputs or activations"}),
    held<&S::expert_load>({.part = StackPart::kExpertLoad,
                           .key = "expert_load",
                           .title = "load of experts",
                           .help = "max/mean tokens over EP ranks: a word, a number, or a file",
                           .words = kLoads,
                           .is_ratio = true}),
    held<&S::ep_overlap>({.part = StackPart::kEpOverlap,
                          .key = "ep_overlap",
                          .title = "overlap of dispatch",
                          .help = "overlap the MoE all-to-all with another micro-batch's compute"}),
    held<&S::delay_wgrad>({.part = StackPart::kDelayWgrad,
                           .key = "delay_wgrad",
                           .title = "delayed weight gradients",
                           .help = "delay wgrad GEMMs to overlap them with the MoE all-to-all"}),
    held<&S::expandable_segments>({.part = StackPart::kExpandableSegments,
                                   .key = "expandable_segments",
                                   .title = "expandable segments",
                                   .help = "PyTorch's expandable_segments: less fragmentation"}),
    held<&S::master_weights>({.part = StackPart::kMasterWeights,
                              .key = "master_weights",
                              .title = "master weights",
                              .help = "fp32 weights of 16-bit training (none: pure bf16)"}),
    held<&S::expert_kernel>({.part = StackPart::kExpertKernel,
                             .key = "expert_kernel",
                             .title = "expert kernel",
                             .help = "MoE experts: grouped or looped GEMMs, or one kernel"}),
    held<&S::fp32_matmul>({.part = StackPart::kFp32Matmul,
                           .key = "fp32_matmul",
                           .title = "arithmetic of fp32 GEMMs",
                           .help = "fp32 GEMMs on fp32 units, or on matrix units as TF32"}),
    held<&T::optimizer>({.part = StackPart::kOptimizerKind,
                         .key = "optimizer_kind",
                         .option = "optimizer",
                         .title = "optimizer",
                         .help = "AdamW, or Muon for the matrices of the blocks"}),
    held<&T::muon_tp_mode>({.part = StackPart::kMuonTpMode,
                            .key = "muon_tp_mode",
                            .title = "Muon with tensor parallelism",
                            .help = "Muon's iterations over matrices that TP shards"}),
    held<&S::expert_capacity>({.part = StackPart::kExpertCapacity,
                               .key = "expert_capacity",
                               .title = "capacity of an expert rank",
                               .help = "size of an EP rank's token buffer over its mean tokens",
                               .words = kCapacities,
                               .is_ratio = true}),
    held<&S::expert_stash>({.part = StackPart::kExpertStash,
                            .key = "expert_stash",
                            .title = "stash of expert activations",
                            .help = "size of the paged expert stash over the mean tokens of a rank",
                            .words = kStashes,
                            .is_ratio = true}),
    held<&S::offload_layers>({.part = StackPart::kOffloadLayers,
                              .key = "offload_layers",
                              .title = "layers with offloaded activations",
                              .help = "first layers per chunk whose activations are in host memory",
                              .words = kOffloaded,
                              .most_count = kMostLayers}),
}};

}  // namespace

std::span<const PartRow> part_rows() { return kRows; }

StackSpec with_parts(StackSpec stack, const PartValues& parts) {
  for (const auto& [part, value] : parts) {
    row_of(part).set(stack, value);
    stack.choices.parts.erase(part);
  }
  const bool states_logits = parts.contains(StackPart::kLogitsDtype);
  if (stack.compiles_loss && parts.contains(StackPart::kCompile) && !states_logits) {
    stack.training.wide_logits = !stack.parts.compile;
  }
  return stack;
}

}  // namespace tpsim

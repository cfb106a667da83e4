// The table of software parts, and with_parts().
#include <type_traits>

#include "core/software/stack_parts.h"
#include "core/software/stack_spec.h"

namespace tpsim {
namespace {

// Values of cuda_graphs: named sets, then the scopes of a layer. The last scope, kIteration, is
// valid only in the set full_iteration.
constexpr auto kGraphs = [] {
  constexpr auto kScopes = field_words<GraphScope, bit>();
  std::array<FieldWord, 3 + kScopes.size() - 1> words = {
      {{0, "none"}, {kGraphsOfLayers, "full"}, {kGraphsOfStep, "full_iteration"}}};
  for (std::size_t i = 3; i < words.size(); ++i) words[i] = kScopes[i - 3];
  return words;
}();
constexpr auto kModules = field_words<RecomputeModule, bit>();
constexpr auto kMoments = std::to_array<FieldWord>(
    {{static_cast<std::int64_t>(DType::kFloat32), name_of(DType::kFloat32)},
     {static_cast<std::int64_t>(DType::kBFloat16), name_of(DType::kBFloat16)}});
constexpr auto kLoads = std::to_array<FieldWord>(
    {{kNaturalLoad, "natural"}, {kBalancedLoad, "balanced"}, {kCountedLoad, "counted"}});
constexpr auto kShards =
    std::to_array<FieldWord>({{kShardOverAll, "all"}, {kShardOverNode, "node"}});
constexpr std::int64_t kMostRanks = 1 << 20;
constexpr auto kCapacities = std::to_array<FieldWord>({{kAnyTokens, "unbounded"}});
constexpr auto kStashes = std::to_array<FieldWord>({{kNoStash, "off"}});
constexpr auto kOffloaded = std::to_array<FieldWord>({{0, "none"}});
constexpr std::int64_t kMostLayers = 1 << 12;
constexpr std::int64_t kMostRank = 1 << 16, kMostAlpha = 1 << 20, kMostPercent = 99;

// Layers with adapters: named sets, then single layers.
constexpr auto kTargets = [] {
  constexpr auto kLayers = field_words<AdapterTarget, adapter_bit>();
  std::array<FieldWord, 3 + kLayers.size()> words = {
      {{kAllTargets, "all-linear"}, {kAttentionTargets, "attention"}, {kMlpTargets, "mlp"}}};
  for (std::size_t i = 0; i < kLayers.size(); ++i) words[3 + i] = kLayers[i];
  return words;
}();
constexpr auto kTrainedParts = [] {
  constexpr auto kParts = field_words<TrainedPart, trained_bit>();
  std::array<FieldWord, 1 + kParts.size()> words = {{{0, "none"}}};
  for (std::size_t i = 0; i < kParts.size(); ++i) words[1 + i] = kParts[i];
  return words;
}();

using S = SoftwareParts;
using T = TrainingOptions;
using F = Finetune;

template <class Class, class Value>
constexpr bool is_trained(Value Class::*) {
  return std::is_same_v<Class, T>;
}

using Setter = void (*)(StackSpec&, std::int64_t);

// The row of a member of the stack's parts or of its training options. `set` replaces the plain
// assignment of the member.
template <auto member>
constexpr PartRow part(StackPart part, std::string_view key, FieldFacts facts,
                       Setter set = nullptr) {
  PartRow row;
  facts.key = key;
  if constexpr (is_trained(member)) {
    row = {field_at<StackSpec, &StackSpec::training, member>(facts), part};
  } else {
    row = {field_at<StackSpec, &StackSpec::parts, member>(facts), part};
  }
  if (facts.kind != FieldKind::kNumber) row.kind = facts.kind;
  if (set != nullptr) row.set = set;
  return row;
}

// Also sets the gradient reduction of the executed program.
void set_sync(StackSpec& stack, std::int64_t value) {
  stack.parts.data_parallel_sync = static_cast<DataParallelSync>(value);
  const bool whole = stack.parts.data_parallel_sync == DataParallelSync::kAllReduce ||
                     stack.parts.data_parallel_sync == DataParallelSync::kBf16Optimizer;
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

using Term = StepTerm;

// The row of a member of the adapters' description.
template <auto member>
constexpr PartRow lora_part(StackPart part, std::string_view key, FieldFacts facts) {
  facts.key = key;
  facts.terms = {
      Term::kMatmul,   Term::kElementwise,       Term::kGroupedProducts,   Term::kOptimizer,
      Term::kClipping, Term::kGradientReduction, Term::kZeroCommunication, Term::kWeightGather};
  facts.is_executed = true;
  PartRow row{field_at<StackSpec, &StackSpec::training, &T::finetune, member>(facts), part};
  if (facts.kind != FieldKind::kNumber) row.kind = facts.kind;
  return row;
}
// The method is made of two members.
constexpr PartRow method_row(PartRow row) {
  row.kind = FieldKind::kWord;
  row.words = kFieldWords<FinetuneMethod>;
  row.get = [](const StackSpec& stack) {
    return static_cast<std::int64_t>(method_of(stack.training.finetune));
  };
  row.set = [](StackSpec& stack, std::int64_t value) {
    set_method(stack.training.finetune, static_cast<FinetuneMethod>(value));
  };
  return row;
}

constexpr std::array<PartRow, kStackPartCount> kPartRows = {{
    part<&S::attention_kernel>(StackPart::kAttentionKernel, "attention_kernel",
                               {.title = "attention kernel",
                                .help = "attention kernel; best: the kernel timed in the profile",
                                .terms = {Term::kAttention}}),
    part<&S::norm_kernel>(StackPart::kNormKernel, "norm_kernel",
                          {.title = "norm kernel",
                           .help = "RMSNorm: one fused kernel or unfused PyTorch ops",
                           .terms = {Term::kElementwise}}),
    part<&S::rotary_kernel>(StackPart::kRotaryKernel, "rotary_kernel",
                            {.title = "rotary kernel",
                             .help = "rotary embedding; fused_unscaled: fused except with YaRN",
                             .terms = {Term::kElementwise}}),
    part<&S::activation_kernel>(StackPart::kActivationKernel, "activation_kernel",
                                {.title = "activation kernel",
                                 .help = "bias+GELU and SwiGLU: fused or unfused",
                                 .terms = {Term::kElementwise}}),
    part<&S::residual_kernel>(StackPart::kResidualKernel, "residual_kernel",
                              {.title = "residual kernel",
                               .help = "bias+dropout+residual: fused or unfused",
                               .terms = {Term::kElementwise}}),
    part<&S::residual_gradient>(
        StackPart::kResidualGradient, "residual_gradient",
        {.title = "residual's gradient",
         .help = "residual's gradient: added in the norm kernel or separately",
         .terms = {Term::kElementwise}}),
    part<&S::optimizer_kernel>(StackPart::kOptimizerKernel, "optimizer_kernel",
                               {.title = "optimizer kernel",
                                .help = "AdamW: one fused kernel or foreach ops",
                                .terms = {Term::kOptimizer}}),
    part<&S::loss_head>(StackPart::kLossHead, "loss_head",
                        {.title = "loss head",
                         .help = "cross-entropy implementation",
                         .terms = {Term::kElementwise, Term::kTensorCommunication}},
                        set_loss),
    part<&T::logits_dtype>(StackPart::kLogitsDtype, "logits_dtype",
                           {.title = "dtype of the logits",
                            .help = "dtype of the logits: the plan's, or an fp32 copy",
                            .terms = {Term::kElementwise},
                            .is_executed = true}),
    part<&T::gradient_accumulation>(
        StackPart::kGradientAccumulation, "gradient_accumulation",
        {.title = "gradient accumulation",
         .help = "wgrad accumulation: separate, in the GEMM, or overwrites first",
         .terms = {Term::kMatmul, Term::kElementwise, Term::kZeroCommunication,
                   Term::kGroupedProducts, Term::kPermute, Term::kOptimizer},
         .is_executed = true}),
    part<&S::data_parallel_sync>(
        StackPart::kDataParallelSync, "data_parallel_sync",
        {.title = "data-parallel synchronization",
         .help = "gradient reduction over data-parallel ranks",
         .terms = {Term::kGradientReduction, Term::kWeightGather, Term::kZeroCommunication}},
        set_sync),
    part<&T::gradient_sync>(
        StackPart::kGradientSync, "gradient_sync",
        {.title = "gradient synchronization",
         .help = "when ZeRO 2 and 3 reduce-scatter the gradients of a step",
         .terms = {Term::kZeroCommunication, Term::kGradientReduction, Term::kOptimizer},
         .is_executed = true}),
    part<&T::reduce_dtype>(StackPart::kReduceDtype, "reduce_dtype",
                           {.title = "dtype of reduction",
                            .help = "dtype of gradient reduction with ZeRO 2 and 3",
                            .terms = {Term::kZeroCommunication, Term::kGradientReduction},
                            .is_executed = true}),
    part<&T::overlap_gradient_reduction>(
        StackPart::kOverlapGradientReduction, "overlap_gradient_reduction",
        {.title = "overlap of gradient reduction",
         .help = "overlap gradient reduction with the last backward",
         .terms = {Term::kZeroCommunication, Term::kGradientReduction},
         .is_executed = true}),
    part<&T::overlap_parameter_gather>(
        StackPart::kOverlapParameterGather, "overlap_parameter_gather",
        {.title = "overlap of parameter gather",
         .help = "overlap the weight all-gather with the next forward",
         .terms = {Term::kZeroCommunication, Term::kWeightGather, Term::kOptimizer}}),
    part<&S::shard_group>(StackPart::kShardGroup, "shard_group",
                          {.title = "shard group",
                           .help = "GPUs per ZeRO shard group: all, one node, or N (HSDP)",
                           .kind = FieldKind::kWordOrCount,
                           .most = kMostRanks,
                           .words = kShards,
                           .terms = {Term::kZeroCommunication, Term::kGradientReduction,
                                     Term::kOptimizer, Term::kWeightGather, Term::kClipping}}),
    part<&T::pipeline_sends>(StackPart::kPipelineSends, "pipeline_sends",
                             {.title = "pipeline sends",
                              .help = "pipeline P2P: whole activations, or one slice per TP rank",
                              .terms = {Term::kTransfer},
                              .is_executed = true}),
    part<&S::p2p_calls>(StackPart::kP2pCalls, "p2p_calls",
                        {.title = "pipeline calls",
                         .help = "pipeline P2P: send and receive batched, or one after the other",
                         .terms = {Term::kTransfer}}),
    part<&S::overlap_p2p>(StackPart::kOverlapP2p, "overlap_p2p",
                          {.title = "overlap of pipeline sends",
                           .help = "overlap P2P of interleaved pipelines with compute",
                           .terms = {Term::kTransfer}}),
    part<&S::tp_overlap>(StackPart::kTpOverlap, "tp_overlap",
                         {.title = "tensor-parallel overlap",
                          .help = "overlap tensor-parallel collectives with GEMMs",
                          .terms = {Term::kTensorCommunication},
                          .is_executed = true},
                         set_overlap),
    part<&T::tp_recompute_allgather>(
        StackPart::kTpRecomputeAllgather, "tp_recompute_allgather",
        {.title = "recomputed all-gather",
         .help = "all-gather sequence-parallel inputs again in backward",
         .terms = {Term::kTensorCommunication},
         .is_executed = true}),
    part<&S::cp_comm_type>(StackPart::kCpCommType, "cp_comm_type",
                           {.title = "exchange of keys and values",
                            .help = "exchange of keys and values between context-parallel ranks",
                            .terms = {Term::kContextCommunication}}),
    part<&S::blocking_launches>(StackPart::kBlockingLaunches, "blocking_launches",
                                {.title = "blocking launches",
                                 .help = "CUDA_LAUNCH_BLOCKING=1: the host waits after each launch",
                                 .terms = {Term::kHostWait}}),
    part<&S::cuda_graphs>(StackPart::kCudaGraphs, "cuda_graphs",
                          {.option = "cuda-graph-scope",
                           .title = "CUDA graphs",
                           .help = "modules captured in CUDA graphs; plan tries sets: attn/mlp",
                           .kind = FieldKind::kSet,
                           .words = kGraphs,
                           .terms = {Term::kHostWait}}),
    part<&S::compile>(
        StackPart::kCompile, "compile",
        {.title = "torch.compile",
         .help = "torch.compile of the layers: fuses their elementwise ops",
         .terms = {Term::kElementwise, Term::kHostWait, Term::kContextCommunication}}),
    part<&S::recompute_modules>(
        StackPart::kRecomputeModules, "recompute_modules",
        {.title = "recomputed modules",
         .help = "modules of selective recompute; plan tries sets: mlp/moe_act",
         .kind = FieldKind::kSet,
         .words = kModules,
         .terms = {Term::kMatmul, Term::kAttention, Term::kElementwise, Term::kPermute}}),
    part<&S::optimizer_dtype>(StackPart::kOptimizerDtype, "optimizer_dtype",
                              {.title = "dtype of the optimizer's moments",
                               .help = "dtype of the optimizer's moments",
                               .words = kMoments,
                               .terms = {Term::kOptimizer}}),
    part<&S::dispatcher>(StackPart::kDispatcher, "dispatcher",
                         {.title = "dispatcher",
                          .help = "MoE token dispatcher",
                          .terms = {Term::kExpertCommunication, Term::kPermute}}),
    part<&S::router_kernel>(StackPart::kRouterKernel, "router_kernel",
                            {.title = "router kernel",
                             .help = "MoE router: fused or unfused",
                             .terms = {Term::kPermute}}),
    part<&S::permute>(StackPart::kPermute, "permute",
                      {.title = "permutation",
                       .help = "MoE permute and unpermute: fused, or PyTorch ops",
                       .terms = {Term::kPermute}}),
    part<&S::expert_weighting>(
        StackPart::kExpertWeighting, "expert_weighting",
        {.title = "weighting of experts",
         .help = "router probabilities scale expert outputs or activations"}),
    part<&S::expert_load>(StackPart::kExpertLoad, "expert_load",
                          {.title = "load of experts",
                           .help = "max/mean tokens over EP ranks: a word, a number, or a file",
                           .kind = FieldKind::kWordOrRatio,
                           .words = kLoads,
                           .terms = {Term::kGroupedProducts, Term::kImbalance}}),
    part<&S::ep_overlap>(StackPart::kEpOverlap, "ep_overlap",
                         {.title = "overlap of dispatch",
                          .help = "overlap the MoE all-to-all with another micro-batch's compute",
                          .terms = {Term::kExpertCommunication, Term::kTensorCommunication}}),
    part<&S::delay_wgrad>(StackPart::kDelayWgrad, "delay_wgrad",
                          {.title = "delayed weight gradients",
                           .help = "delay wgrad GEMMs to overlap them with the MoE all-to-all",
                           .terms = {Term::kExpertCommunication}}),
    part<&S::expandable_segments>(StackPart::kExpandableSegments, "expandable_segments",
                                  {.title = "expandable segments",
                                   .help = "PyTorch's expandable_segments: less fragmentation"}),
    part<&S::master_weights>(StackPart::kMasterWeights, "master_weights",
                             {.title = "master weights",
                              .help = "fp32 weights of 16-bit training (none: pure bf16)",
                              .terms = {Term::kElementwise, Term::kOptimizer}}),
    part<&S::expert_kernel>(StackPart::kExpertKernel, "expert_kernel",
                            {.title = "expert kernel",
                             .help = "MoE experts: grouped or looped GEMMs, or one kernel",
                             .terms = {Term::kGroupedProducts, Term::kZeroCommunication}}),
    part<&S::fp32_matmul>(StackPart::kFp32Matmul, "fp32_matmul",
                          {.title = "arithmetic of fp32 GEMMs",
                           .help = "fp32 GEMMs on fp32 units, or on matrix units as TF32"}),
    part<&T::optimizer_kind>(StackPart::kOptimizerKind, "optimizer_kind",
                             {.option = "optimizer",
                              .title = "optimizer",
                              .help = "optimizer of the step; muon: for the matrices of the blocks",
                              .terms = {Term::kOptimizer, Term::kGradientReduction, Term::kClipping,
                                        Term::kWeightGather},
                              .is_executed = true}),
    part<&T::muon_tp_mode>(StackPart::kMuonTpMode, "muon_tp_mode",
                           {.title = "Muon with tensor parallelism",
                            .help = "Muon's iterations over matrices that TP shards",
                            .terms = {Term::kOptimizer},
                            .is_executed = true}),
    part<&S::expert_capacity>(StackPart::kExpertCapacity, "expert_capacity",
                              {.title = "capacity of an expert rank",
                               .help = "size of an EP rank's token buffer over its mean tokens",
                               .kind = FieldKind::kWordOrRatio,
                               .words = kCapacities}),
    part<&S::expert_stash>(StackPart::kExpertStash, "expert_stash",
                           {.title = "stash of expert activations",
                            .help = "size of the paged expert stash over the mean tokens of a rank",
                            .kind = FieldKind::kWordOrRatio,
                            .words = kStashes,
                            .terms = {Term::kPermute}}),
    part<&S::offload_layers>(StackPart::kOffloadLayers, "offload_layers",
                             {.title = "layers with offloaded activations",
                              .help = "first layers per chunk whose activations are in host memory",
                              .kind = FieldKind::kWordOrCount,
                              .most = kMostLayers,
                              .words = kOffloaded,
                              .terms = {Term::kElementwise}}),
    part<&S::cpu_optimizer>(StackPart::kCpuOptimizer, "cpu_optimizer",
                            {.title = "optimizer on the CPU",
                             .help = "with --offload optimizer: whose AdamW runs on the CPU",
                             .terms = {Term::kOptimizer}}),
    method_row(lora_part<&F::adapts>(
        StackPart::kFinetune, "finetune",
        {.title = "fine-tuning", .help = "trained weights: all, or adapters of frozen ones"})),
    lora_part<&F::rank>(
        StackPart::kLoraRank, "lora_rank",
        {.title = "rank of adapters", .help = "rank of LoRA adapters [16]", .most = kMostRank}),
    lora_part<&F::alpha>(StackPart::kLoraAlpha, "lora_alpha",
                         {.title = "alpha of adapters",
                          .help = "alpha of LoRA adapters [32]: changes losses only",
                          .most = kMostAlpha}),
    lora_part<&F::dropout>(StackPart::kLoraDropout, "lora_dropout",
                           {.title = "dropout of adapters",
                            .help = "dropout of the adapters' inputs, in percent [0]",
                            .least = 0,
                            .most = kMostPercent}),
    lora_part<&F::targets>(StackPart::kLoraTargets, "lora_targets",
                           {.title = "layers with adapters",
                            .help = "linear layers with adapters; plan tries sets: q_proj/mlp",
                            .kind = FieldKind::kSet,
                            .words = kTargets}),
    lora_part<&F::scaling>(StackPart::kLoraScaling, "lora_scaling",
                           {.title = "scale of adapters",
                            .help = "scale of adapters: alpha / rank, or rsLoRA's / sqrt(rank)"}),
    lora_part<&F::dtype>(StackPart::kLoraDtype, "lora_dtype",
                         {.title = "dtype of adapters",
                          .help = "dtype of adapters: the plan's, or fp32 weights with autocast"}),
    lora_part<&F::kernel>(StackPart::kLoraKernel, "lora_kernel",
                          {.title = "kernels of adapters",
                           .help = "scale and addition of adapters: in the GEMM, or peft's ops"}),
    lora_part<&F::base>(StackPart::kBaseDtype, "base_dtype",
                        {.title = "dtype of frozen weights",
                         .help = "storage of frozen linear weights with --finetune qlora [nf4]"}),
    lora_part<&F::double_quantization>(
        StackPart::kDoubleQuantization, "double_quantization",
        {.title = "double quantization", .help = "store the scales of nf4 weights in 8 bits"}),
    lora_part<&F::trained>(StackPart::kTrainedParts, "trained_parts",
                           {.title = "other trained weights",
                            .help = "weights trained beside the adapters [none]",
                            .kind = FieldKind::kSet,
                            .words = kTrainedParts}),
}};

}  // namespace

std::span<const PartRow> part_rows() { return kPartRows; }

StackSpec with_parts(StackSpec stack, const PartValues& parts) {
  for (const auto& [part, value] : parts) {
    row_of(part).set(stack, value);
    stack.choices.parts.erase(part);
  }
  const bool states_logits = parts.contains(StackPart::kLogitsDtype);
  if (stack.compiles_loss && parts.contains(StackPart::kCompile) && !states_logits) {
    stack.training.logits_dtype = stack.parts.compile ? LogitsDtype::kPlan : LogitsDtype::kFloat32;
  }
  return stack;
}

}  // namespace tpsim

#include "core/stack_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "core/check.h"
#include "core/leading_number.h"
#include "core/stack_spec.h"
#include "core/text.h"

namespace tpsim {
namespace {

template <class E>
constexpr auto words_of() {
  std::array<PartWord, kWordsOf<E>.size()> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = {static_cast<std::int64_t>(i), kWordsOf<E>[i]};
  }
  return words;
}

template <class E>
constexpr auto bits_of() {
  std::array<PartWord, kWordsOf<E>.size()> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = {bit(static_cast<E>(i)), kWordsOf<E>[i]};
  }
  return words;
}

constexpr auto kFusions = words_of<KernelFusion>();
constexpr auto kRotaries = words_of<RotaryKernel>();
constexpr auto kActivations = words_of<ActivationKernel>();
constexpr auto kAttentions = words_of<AttentionKernel>();
constexpr auto kLossHeads = words_of<LossHead>();
constexpr auto kSyncs = words_of<DataParallelSync>();
constexpr auto kCalls = words_of<P2pCalls>();
constexpr auto kOverlaps = words_of<TensorOverlap>();
constexpr auto kDispatchers = words_of<Dispatcher>();
constexpr auto kWeightings = words_of<ExpertWeighting>();
constexpr auto kPermutations = words_of<Permutation>();
// Sets that have names of their own, then the scopes of a layer; the step alone, the last scope, is
// none to ask for.
constexpr auto kGraphs = [] {
  constexpr auto kScopes = bits_of<GraphScope>();
  std::array<PartWord, 3 + kScopes.size() - 1> words = {
      {{0, "none"}, {kGraphsOfLayers, "full"}, {kGraphsOfStep, "full_iteration"}}};
  for (std::size_t i = 3; i < words.size(); ++i) words[i] = kScopes[i - 3];
  return words;
}();
constexpr auto kModules = bits_of<RecomputeModule>();
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

template <auto SoftwareParts::*member>
constexpr auto getter() {
  return [](const StackSpec& stack) { return static_cast<std::int64_t>(stack.parts.*member); };
}
template <auto SoftwareParts::*member>
constexpr auto setter() {
  return [](StackSpec& stack, std::int64_t value) {
    stack.parts.*member =
        static_cast<std::remove_reference_t<decltype(stack.parts.*member)>>(value);
  };
}
template <bool TrainingOptions::*member>
constexpr auto option_getter() {
  return [](const StackSpec& stack) { return std::int64_t{stack.training.*member}; };
}
template <bool TrainingOptions::*member>
constexpr auto option_setter() {
  return [](StackSpec& stack, std::int64_t value) { stack.training.*member = value != 0; };
}

// What the executed program issues follows from the kind.
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
  stack.parts.tensor_overlap = static_cast<TensorOverlap>(value);
  stack.training.overlap_tensor_reduction = value == static_cast<int>(TensorOverlap::kReductions);
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
    {.part = StackPart::kAttentionKernel,
     .key = "attention_kernel",
     .title = "attention kernel",
     .help = "which kernel attends; best: the one that the profile timed",
     .words = kAttentions,
     .get = getter<&S::attention>(),
     .set = setter<&S::attention>()},
    {.part = StackPart::kNormKernel,
     .key = "norm_kernel",
     .title = "norm kernel",
     .help = "RMSNorm as one kernel or as plain ops",
     .words = kFusions,
     .get = getter<&S::norm>(),
     .set = setter<&S::norm>()},
    {.part = StackPart::kRotaryKernel,
     .key = "rotary_kernel",
     .title = "rotary kernel",
     .help = "one kernel, or plain ops; fused_unscaled: plain for YaRN",
     .words = kRotaries,
     .get = getter<&S::rotary>(),
     .set = setter<&S::rotary>()},
    {.part = StackPart::kActivationKernel,
     .key = "activation_kernel",
     .title = "activation kernel",
     .help = "GELU with its bias and SwiGLU as one kernel or as plain ops",
     .words = kActivations,
     .get = getter<&S::activation>(),
     .set = setter<&S::activation>()},
    {.part = StackPart::kResidualKernel,
     .key = "residual_kernel",
     .title = "residual kernel",
     .help = "bias, dropout and residual as one kernel or as plain ops",
     .words = kFusions,
     .get = getter<&S::residual>(),
     .set = setter<&S::residual>()},
    {.part = StackPart::kResidualGradient,
     .key = "residual_gradient",
     .title = "residual's gradient",
     .help = "residual and norm add up their gradients in one kernel or two",
     .words = kFusions,
     .get = getter<&S::residual_gradient>(),
     .set = setter<&S::residual_gradient>()},
    {.part = StackPart::kOptimizerKernel,
     .key = "optimizer_kernel",
     .title = "optimizer kernel",
     .help = "AdamW as one kernel or as plain ops over lists of tensors",
     .words = kFusions,
     .get = getter<&S::optimizer>(),
     .set = setter<&S::optimizer>()},
    {.part = StackPart::kLossHead,
     .key = "loss_head",
     .title = "loss head",
     .help = "how the loss is taken from the logits",
     .words = kLossHeads,
     .get = getter<&S::loss_head>(),
     .set = set_loss},
    {.part = StackPart::kLogitsDtype,
     .key = "logits_dtype",
     .title = "dtype of the logits",
     .help = "the plan's, or an fp32 copy that the loss is taken from",
     .words = kLogits,
     .get = option_getter<&T::wide_logits>(),
     .set = option_setter<&T::wide_logits>()},
    {.part = StackPart::kGradientAccumulation,
     .key = "gradient_accumulation",
     .title = "gradient accumulation",
     .help = "weight gradients added by a pass or product, or first written",
     .words = kSums,
     .get = accumulation_of,
     .set = set_accumulation},
    {.part = StackPart::kDataParallelSync,
     .key = "data_parallel_sync",
     .title = "data-parallel synchronisation",
     .help = "how gradients are added up over data-parallel ranks",
     .words = kSyncs,
     .get = getter<&S::sync>(),
     .set = set_sync},
    {.part = StackPart::kOverlapGradientReduction,
     .key = "overlap_gradient_reduction",
     .title = "overlap of gradient reduction",
     .help = "gradients are reduced beside the last backward",
     .words = kSwitch,
     .is_switch = true,
     .get = option_getter<&T::overlap_gradient_reduction>(),
     .set = option_setter<&T::overlap_gradient_reduction>()},
    {.part = StackPart::kOverlapParameterGather,
     .key = "overlap_parameter_gather",
     .title = "overlap of parameter gather",
     .help = "weights are gathered beside the next forward",
     .words = kSwitch,
     .is_switch = true,
     .get = option_getter<&T::overlap_parameter_gather>(),
     .set = option_setter<&T::overlap_parameter_gather>()},
    {.part = StackPart::kShardGroup,
     .key = "shard_group",
     .title = "shard group",
     .help = "GPUs over which ZeRO shards: all, those of a node, or N",
     .words = kShards,
     .most_count = kMostRanks,
     .get = getter<&S::shard_group>(),
     .set = setter<&S::shard_group>()},
    {.part = StackPart::kPipelineSends,
     .key = "pipeline_sends",
     .title = "pipeline sends",
     .help = "whole activations, or each tensor-parallel rank its part",
     .words = kSends,
     .get = option_getter<&T::scatter_gather_transfers>(),
     .set = option_setter<&T::scatter_gather_transfers>()},
    {.part = StackPart::kP2pCalls,
     .key = "p2p_calls",
     .title = "pipeline calls",
     .help = "stages send and receive at once, or in turn",
     .words = kCalls,
     .get = getter<&S::p2p_calls>(),
     .set = setter<&S::p2p_calls>()},
    {.part = StackPart::kOverlapP2p,
     .key = "overlap_p2p",
     .title = "overlap of pipeline sends",
     .help = "activations are sent beside compute",
     .words = kSwitch,
     .is_switch = true,
     .get = getter<&S::overlap_p2p>(),
     .set = setter<&S::overlap_p2p>()},
    {.part = StackPart::kTensorOverlap,
     .key = "tp_overlap",
     .title = "tensor-parallel overlap",
     .help = "tensor-parallel collectives beside products",
     .words = kOverlaps,
     .get = getter<&S::tensor_overlap>(),
     .set = set_overlap},
    {.part = StackPart::kBlockingLaunches,
     .key = "blocking_launches",
     .title = "blocking launches",
     .help = "CUDA_LAUNCH_BLOCKING=1: the host waits for every kernel",
     .words = kSwitch,
     .is_switch = true,
     .get = getter<&S::blocking_launches>(),
     .set = setter<&S::blocking_launches>()},
    {.part = StackPart::kCudaGraphs,
     .key = "cuda_graphs",
     .option = "cuda-graph-scope",
     .title = "CUDA graphs",
     .help = "what is replayed without the host",
     .words = kGraphs,
     .is_set = true,
     .get = getter<&S::cuda_graphs>(),
     .set = setter<&S::cuda_graphs>()},
    {.part = StackPart::kCompile,
     .key = "compile",
     .title = "torch.compile",
     .help = "layers are compiled: their plain ops become fused kernels",
     .words = kSwitch,
     .is_switch = true,
     .get = getter<&S::compile>(),
     .set = setter<&S::compile>()},
    {.part = StackPart::kRecomputeModules,
     .key = "recompute_modules",
     .title = "recomputed modules",
     .help = "what selective recompute makes again in backward",
     .words = kModules,
     .is_set = true,
     .get = getter<&S::recompute_modules>(),
     .set = setter<&S::recompute_modules>()},
    {.part = StackPart::kMomentsDtype,
     .key = "optimizer_dtype",
     .title = "dtype of Adam's moments",
     .help = "in which the optimizer keeps its two moments",
     .words = kMoments,
     .get = getter<&S::moments_dtype>(),
     .set = setter<&S::moments_dtype>()},
    {.part = StackPart::kDispatcher,
     .key = "dispatcher",
     .title = "dispatcher",
     .help = "how tokens reach their experts and come back",
     .words = kDispatchers,
     .get = getter<&S::dispatcher>(),
     .set = setter<&S::dispatcher>()},
    {.part = StackPart::kRouterKernel,
     .key = "router_kernel",
     .title = "router kernel",
     .help = "choices of experts with a few kernels or with PyTorch's",
     .words = kFusions,
     .get = getter<&S::router>(),
     .set = setter<&S::router>()},
    {.part = StackPart::kPermutation,
     .key = "permute",
     .title = "permutation",
     .help = "tokens sorted by expert with one kernel or with PyTorch's",
     .words = kPermutations,
     .get = getter<&S::permutation>(),
     .set = setter<&S::permutation>()},
    {.part = StackPart::kExpertWeighting,
     .key = "expert_weighting",
     .title = "weighting of experts",
     .help = "where a token's weights multiply: results, or activations",
     .words = kWeightings,
     .get = getter<&S::expert_weighting>(),
     .set = setter<&S::expert_weighting>()},
    {.part = StackPart::kExpertLoad,
     .key = "expert_load",
     .title = "load of experts",
     .help = "tokens of the busiest rank over the mean: word, 1.3, or file",
     .words = kLoads,
     .is_ratio = true,
     .get = getter<&S::expert_load>(),
     .set = setter<&S::expert_load>()},
    {.part = StackPart::kExpertOverlap,
     .key = "ep_overlap",
     .title = "overlap of dispatch",
     .help = "tokens travel beside the compute of another micro-batch",
     .words = kSwitch,
     .is_switch = true,
     .get = getter<&S::expert_overlap>(),
     .set = setter<&S::expert_overlap>()},
    {.part = StackPart::kDelayedWeightGradients,
     .key = "delay_wgrad",
     .title = "delayed weight gradients",
     .help = "weight gradients wait for tokens to travel beside them",
     .words = kSwitch,
     .is_switch = true,
     .get = getter<&S::delayed_weight_gradients>(),
     .set = setter<&S::delayed_weight_gradients>()},
    {.part = StackPart::kExpandableSegments,
     .key = "expandable_segments",
     .title = "expandable segments",
     .help = "freed memory merges: no holes that others cannot use",
     .words = kSwitch,
     .is_switch = true,
     .get = getter<&S::expandable_segments>(),
     .set = setter<&S::expandable_segments>()},
}};

struct OptionNames {
  std::array<std::string, kStackPartCount> names;
  OptionNames() {
    for (std::size_t i = 0; i < kRows.size(); ++i) {
      TPSIM_CHECK(static_cast<std::size_t>(kRows[i].part) == i, "rows stand in their order");
      names[i] = "--" + std::string(kRows[i].option.empty() ? kRows[i].key : kRows[i].option);
      std::replace(names[i].begin(), names[i].end(), '_', '-');
    }
  }
};

}  // namespace

std::span<const PartRow> part_rows() { return kRows; }
const PartRow& row_of(StackPart part) { return kRows[static_cast<std::size_t>(part)]; }

std::string_view option_of(StackPart part) {
  static const OptionNames options;
  return options.names[static_cast<std::size_t>(part)];
}

std::string placeholder_of(const PartRow& row) {
  if (row.is_switch) return "on|off";
  std::string text;
  for (const PartWord& word : row.words) {
    text += (text.empty() ? "" : "|") + std::string(word.word);
  }
  if (row.is_set) return text + "[,...]";
  return row.most_count > 0 || row.is_ratio ? text + "|N" : text;
}

namespace {

Result<std::int64_t> word_of(const PartRow& row, std::string_view text) {
  std::vector<std::string_view> words;
  for (const PartWord& word : row.words) words.push_back(word.word);
  TPSIM_TRY(const std::size_t chosen,
            choose("value", text, std::span<const std::string_view>(words)));
  return row.words[chosen].value;
}

// "attn,moe_router", also with '+' or a blank between them.
Result<std::int64_t> set_of(const PartRow& row, std::string_view text) {
  std::int64_t all = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(",+ ", at), text.size());
    TPSIM_TRY(const std::int64_t word, word_of(row, text.substr(at, end - at)));
    all |= word;
    at = end + 1;
  }
  return all;
}

constexpr double kThousandths = 1000, kGreatestRatio = 1e6;

}  // namespace

Result<std::int64_t> parse_value(const PartRow& row, std::string_view text) {
  if (row.is_switch && (text == "0" || text == "1")) return std::int64_t{text == "1" ? 1 : 0};
  if (row.most_count > 0) {
    const auto count = parse_number<std::int64_t>(text);
    if (count && *count >= 1 && *count <= row.most_count) return *count;
  }
  if (row.is_ratio) {
    const auto ratio = parse_number<double>(text);
    if (ratio && *ratio >= 1 && *ratio <= kGreatestRatio) {
      return static_cast<std::int64_t>(std::lround(*ratio * kThousandths));
    }
  }
  return row.is_set ? set_of(row, text) : word_of(row, text);
}

std::string text_of(const PartRow& row, std::int64_t value) {
  for (const PartWord& word : row.words) {
    if (word.value == value) return std::string(word.word);
  }
  if (row.is_ratio) return fmt::format("{}", static_cast<double>(value) / kThousandths);
  if (!row.is_set) return std::to_string(value);
  std::string text;
  for (const PartWord& word : row.words) {
    const bool is_one = word.value != 0 && (word.value & (word.value - 1)) == 0;
    if (is_one && holds(value, word.value))
      text += (text.empty() ? "" : ",") + std::string(word.word);
  }
  return text;
}

StackSpec with_parts(StackSpec stack, const PartValues& parts) {
  for (const auto& [part, value] : parts) row_of(part).set(stack, value);
  return stack;
}

std::string to_string(const PartValues& parts) {
  std::string text;
  for (const auto& [part, value] : parts) {
    const PartRow& row = row_of(part);
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", row.key, text_of(row, value));
  }
  return text;
}

}  // namespace tpsim

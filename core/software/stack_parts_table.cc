// The table of software parts, which parts.txt describes, and with_parts().
#include "core/plan/field_text.h"
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
constexpr auto kCapacities = std::to_array<FieldWord>({{kAnyTokens, "unbounded"}});
constexpr auto kStashes = std::to_array<FieldWord>({{kNoStash, "off"}});
constexpr auto kOffloaded = std::to_array<FieldWord>({{0, "none"}});

// Linear layers: named sets, then single layers.
constexpr auto kWeightParts = field_words<WeightPart, part_bit>();
constexpr auto kTargets = [] {
  std::array<FieldWord, 10> words = {
      {{kLinearWeights, "all-linear"}, {kAttentionWeights, "attention"}, {kMlpWeights, "mlp"}}};
  for (std::size_t i = 3; i < words.size(); ++i) words[i] = kWeightParts[i - 3];
  return words;
}();
constexpr auto kTrainedParts = [] {
  constexpr std::int64_t kAllNorms =
      part_bit(WeightPart::kNorms) | part_bit(WeightPart::kOuterNorms);
  std::array<FieldWord, 4 + kWeightParts.size()> words = {{{0, "none"},
                                                           {kBlockParts, "blocks"},
                                                           {kAttentionWeights, "attention"},
                                                           {kMlpWeights, "mlp"},
                                                           {kAllNorms, "norms"}}};
  std::size_t count = 5;
  for (const FieldWord& word : kWeightParts) {  // --finetune says whether adapters are trained
    if (word.value != part_bit(WeightPart::kAdapters)) words[count++] = word;
  }
  return words;
}();
constexpr auto kTrainedLayers = std::to_array<FieldWord>({{0, "all"}});

using S = SoftwareParts;
using T = TrainingOptions;
using F = Finetune;

using Setter = void (*)(StackSpec&, std::int64_t);

PartRow described(PartRow row, std::string_view key, std::span<const FieldWord> words) {
  row.key = key;
  if (!words.empty()) row.words = words;
  describe(row);
  return row;
}

// The row of a member of the stack's parts or of its training options. `set` replaces the plain
// assignment of the member.
template <auto member>
PartRow part(std::string_view key, std::span<const FieldWord> words = {}, Setter set = nullptr) {
  constexpr bool kIsTrained = requires(T training) { training.*member; };
  PartRow row;
  if constexpr (kIsTrained) {
    row = {field_at<StackSpec, &StackSpec::training, member>({}), {}};
  } else {
    row = {field_at<StackSpec, &StackSpec::parts, member>({}), {}};
  }
  if (set != nullptr) row.set = set;
  return described(row, key, words);
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

// The row of a member of the adapters' description.
template <auto member>
PartRow lora(std::string_view key, std::span<const FieldWord> words = {}) {
  return described({field_at<StackSpec, &StackSpec::training, &T::finetune, member>({}), {}}, key,
                   words);
}
// The method is made of two members.
PartRow method_row() {
  PartRow row = lora<&F::adapts>("finetune", kFieldWords<FinetuneMethod>);
  row.kind = FieldKind::kWord;
  row.get = [](const StackSpec& stack) {
    return static_cast<std::int64_t>(method_of(stack.training.finetune));
  };
  row.set = [](StackSpec& stack, std::int64_t value) {
    set_method(stack.training.finetune, static_cast<FinetuneMethod>(value));
  };
  return row;
}

std::vector<PartRow> made_rows() {
  std::vector<PartRow> rows = {
      part<&S::attention_kernel>("attention_kernel"),
      part<&S::norm_kernel>("norm_kernel"),
      part<&S::rotary_kernel>("rotary_kernel"),
      part<&S::activation_kernel>("activation_kernel"),
      part<&S::residual_kernel>("residual_kernel"),
      part<&S::residual_gradient>("residual_gradient"),
      part<&S::optimizer_kernel>("optimizer_kernel"),
      part<&S::loss_head>("loss_head", {}, set_loss),
      part<&T::logits_dtype>("logits_dtype"),
      part<&T::gradient_accumulation>("gradient_accumulation"),
      part<&S::data_parallel_sync>("data_parallel_sync", {}, set_sync),
      part<&T::gradient_sync>("gradient_sync"),
      part<&T::reduce_dtype>("reduce_dtype"),
      part<&T::overlap_gradient_reduction>("overlap_gradient_reduction"),
      part<&T::overlap_parameter_gather>("overlap_parameter_gather"),
      part<&S::shard_group>("shard_group", kShards),
      part<&T::pipeline_sends>("pipeline_sends"),
      part<&S::p2p_calls>("p2p_calls"),
      part<&S::overlap_p2p>("overlap_p2p"),
      part<&S::tp_overlap>("tp_overlap", {}, set_overlap),
      part<&T::tp_recompute_allgather>("tp_recompute_allgather"),
      part<&S::cp_comm_type>("cp_comm_type"),
      part<&S::blocking_launches>("blocking_launches"),
      part<&S::cuda_graphs>("cuda_graphs", kGraphs),
      part<&S::compile>("compile"),
      part<&S::recompute_modules>("recompute_modules", kModules),
      part<&S::optimizer_dtype>("optimizer_dtype", kMoments),
      part<&S::dispatcher>("dispatcher"),
      part<&S::router_kernel>("router_kernel"),
      part<&S::permute>("permute"),
      part<&S::expert_weighting>("expert_weighting"),
      part<&S::expert_load>("expert_load", kLoads),
      part<&S::ep_overlap>("ep_overlap"),
      part<&S::delay_wgrad>("delay_wgrad"),
      part<&S::expandable_segments>("expandable_segments"),
      part<&S::master_weights>("master_weights"),
      part<&S::expert_kernel>("expert_kernel"),
      part<&S::fp32_matmul>("fp32_matmul"),
      part<&T::optimizer_kind>("optimizer_kind"),
      part<&T::muon_tp_mode>("muon_tp_mode"),
      part<&S::expert_capacity>("expert_capacity", kCapacities),
      part<&S::expert_stash>("expert_stash", kStashes),
      part<&S::offload_layers>("offload_layers", kOffloaded),
      part<&S::cpu_optimizer>("cpu_optimizer"),
      method_row(),
      lora<&F::rank>("lora_rank"),
      lora<&F::alpha>("lora_alpha"),
      lora<&F::dropout>("lora_dropout"),
      lora<&F::targets>("lora_targets", kTargets),
      lora<&F::scaling>("lora_scaling"),
      lora<&F::dtype>("lora_dtype"),
      lora<&F::kernel>("lora_kernel"),
      lora<&F::base>("base_dtype"),
      lora<&F::double_quantization>("double_quantization"),
      lora<&F::trained>("trained_parts", kTrainedParts),
      lora<&F::layers>("trained_layers", kTrainedLayers),
  };
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].part = static_cast<StackPart>(i);
  return rows;
}

}  // namespace

std::span<const PartRow> part_rows() {
  static const std::vector<PartRow> kRows = made_rows();
  return kRows;
}

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

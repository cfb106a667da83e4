// The quantities of launch_rules.txt that are neither a setting nor a software part, and splits
// into stages by torchtitan and DeepSpeed.
#include <algorithm>
#include <iterator>
#include <span>

#include "core/software/launch_rules.h"
#include "core/software/launched_models.h"
#include "core/software/optimizer_kinds.h"
#include "core/software/stack_spec.h"

namespace tpsim {
namespace {

using M = const ModelSpec&;
using P = const Plan&;
using Stack = const StackSpec*;

// Whether a stage starts on a layer that uses the indices of a layer of another stage
// (megatron/core/models/gpt/experimental_attention_variant_module_specs.py:424).
bool cuts_shared_indices(const ModelSpec& model, const Plan& plan) {
  const auto layers = model.attention.chosen > 0 ? indexed_layers(model) : std::nullopt;
  if (!layers || layers->frequency == 1) return false;
  std::int64_t first = 1;
  for (const std::int64_t count : plan.stage_layers) {
    if (count > 0 && shares_indices(*layers, first)) return true;
    first += count;
  }
  return false;
}

bool is_equal_cut(const ModelSpec& model, const Plan& plan) {
  const auto is = [&](bool counts) {
    return equal_stage_layers(model.layers, plan.degrees.pp, counts) == plan.stage_layers;
  };
  return is(false) || is(true);
}

// Whether an attention layer has a window or chunks.
bool has_windows(const ModelSpec& model) {
  const std::vector<BlockShape> blocks = block_shapes(model);
  return std::any_of(blocks.begin(), blocks.end(), [](const BlockShape& block) {
    return block.attention.window > 0 || block.attention.chunk > 0;
  });
}

// Whether tensor and context ranks cannot split the sequence evenly.
bool is_uneven_sequence(const ModelSpec& model, const Plan& plan) {
  const std::int64_t ranks = plan.degrees.tp * plan.degrees.cp;
  return ranks > 1 && model.seq % (2 * ranks) != 0;
}

// Whether the number of an expert's tokens is known only when it runs.
bool has_free_experts(const ModelSpec& model, const StackSpec* stack) {
  return has_experts(model) && model.experts.dropless && stack->parts.expert_capacity == kAnyTokens;
}

// Whether some matrices of an expert are trained, and some are not.
bool splits_experts(const ModelSpec& model) {
  const std::vector<BlockShape> blocks = block_shapes(model);
  return std::any_of(blocks.begin(), blocks.end(), [&](const BlockShape& block) {
    const std::int64_t all =
        is_gated(model.mlp) ? kMlpWeights : kMlpWeights & ~part_bit(WeightPart::kGate);
    const std::int64_t own = block.trained & all;
    return block.experts.count > 0 && own != 0 && own != all;
  });
}

bool has_frozen_blocks(const ModelSpec& model) {
  const std::vector<BlockShape> blocks = block_shapes(model);
  return std::any_of(blocks.begin(), blocks.end(),
                     [](const BlockShape& block) { return !block.has_backward; });
}

constexpr SettingValue kZbH1{Setting::kSchedule, static_cast<std::int64_t>(ScheduleKind::kZbH1)};

// Words of properties of the model.
constexpr FieldFacts kNorms{.kind = FieldKind::kWord, .words = kFieldWords<NormKind>};
constexpr FieldFacts kNormPlaces{.kind = FieldKind::kWord, .words = kFieldWords<NormPlace>};
constexpr FieldFacts kActivations{.kind = FieldKind::kWord, .words = kFieldWords<MlpKind>};
constexpr FieldFacts kPositions{.kind = FieldKind::kWord, .words = kFieldWords<PositionKind>};

struct NamedQuantity {
  // `of` is a lambda without captures.
  template <class Of>
  constexpr NamedQuantity(std::string_view text, Of /*of*/, const FieldFacts* facts = nullptr)
      : name(text),
        quantity{.of_all = [](M m, P p, Stack s) { return std::int64_t(Of{}(m, p, s)); },
                 .facts = facts} {}

  std::string_view name;
  RuleQuantity quantity;
};
constexpr NamedQuantity kOfModel[] = {
    {"experts", [](M m, P, Stack) { return has_experts(m); }},
    {"heads", [](M m, P, Stack) { return m.attention.heads; }},
    {"kv_heads", [](M m, P, Stack) { return m.attention.kv_heads; }},
    {"width_of_heads", [](M m, P, Stack) { return m.attention.heads * m.attention.head_dim; }},
    {"hidden", [](M m, P, Stack) { return m.hidden; }},
    {"prediction_layers", [](M m, P, Stack) { return m.ends.prediction_layers; }},
    {"linear_bias", [](M m, P, Stack) { return m.linear_bias; }},
    {"expert_bias", [](M m, P, Stack) { return m.experts.bias; }},
    {"qkv_bias", [](M m, P, Stack) { return attention_shape(m).qkv_bias; }},
    {"latent", [](M m, P, Stack) { return attention_shape(m).latent.kv_rank; }},
    {"sparse_attention", [](M m, P, Stack) { return m.attention.chosen; }},
    {"tied_embedding", [](M m, P, Stack) { return m.tied_embedding; }},
    {"embedding_norm", [](M m, P, Stack) { return m.embedding_norm; }},
    {"norm_plus_one", [](M m, P, Stack) { return m.norm_plus_one; }},
    {"dropless", [](M m, P, Stack) { return m.experts.dropless; }},
    {"attention_dropout", [](M m, P, Stack) { return m.attention_dropout > 0; }},
    {"hidden_dropout", [](M m, P, Stack) { return m.hidden_dropout > 0; }},
    {"mixed_layers", [](M m, P, Stack) { return !m.other_blocks.empty(); }},
    {"special_parts", [](M m, P, Stack) { return has_planned_ops(m) || m.ends.streams > 1; }},
    {"special_router",
     [](M m, P, Stack) { return m.experts.router != RouterShape{} || m.experts.shared_ffn > 0; }},
    {"windows", [](M m, P, Stack) { return has_windows(m); }},
    {"plain_attention", [](M m, P, Stack) { return has_plain_attention(m); }},
    {"plain_ends", [](M m, P, Stack) { return has_plain_ends(m); }},
    {"encoders", [](M m, P, Stack) { return has_encoders(m); }},
    {"bridge", [](M m, P, Stack) { return has_bridge(m); }},
    {"bridge_options", [](M m, P, Stack) { return has_bridge_options(m); }},
    {"megatron_parts", [](M m, P, Stack) { return has_megatron_parts(m); }},
    {"megatron_layers", [](M m, P, Stack) { return has_megatron_layers(m); }},
    {"megatron_activation", [](M m, P, Stack) { return has_megatron_activation(m); }},
    {"megatron_attention", [](M m, P, Stack) { return has_megatron_attention(m); }},
    {"megatron_biases", [](M m, P, Stack) { return has_megatron_biases(m); }},
    {"megatron_router", [](M m, P, Stack) { return has_megatron_router(m); }},
    {"heterogeneous", [](M m, P, Stack) { return is_heterogeneous(m); }},
    {"titan_layers", [](M m, P, Stack) { return has_titan_layers(m); }},
    {"llama_blocks", [](M m, P, Stack) { return has_llama_blocks(m); }},
    {"norm", [](M m, P, Stack) { return m.norm; }, &kNorms},
    {"norm_place", [](M m, P, Stack) { return m.norm_place; }, &kNormPlaces},
    {"mlp", [](M m, P, Stack) { return m.mlp; }, &kActivations},
    {"position", [](M m, P, Stack) { return m.attention.position; }, &kPositions},
};
constexpr NamedQuantity kOfPlan[] = {
    {"expert_tp", [](M, P p, Stack) { return expert_tensor_ranks(p); }},
    {"expert_dp", [](M, P p, Stack) { return expert_data_ranks(p); }},
    {"expert_ranks", [](M, P p, Stack) { return p.degrees.ep * expert_tensor_ranks(p); }},
    {"ranks_beyond_experts",
     [](M, P p, Stack) { return p.degrees.tp * p.degrees.cp % p.degrees.ep; }},
    {"heads_beyond_ranks", [](M m, P p, Stack) { return m.attention.kv_heads % p.degrees.tp; }},
    {"micro_batches", [](M, P p, Stack) { return micro_batches(p); }},
    {"replicas", [](M, P p, Stack) { return has_replicas(p); }},
    {"casts_nothing", [](M, P p, Stack) { return titan_casts_nothing(p); }},
    {"uneven_sequence", [](M m, P p, Stack) { return is_uneven_sequence(m, p); }},
    {"uneven_ends", [](M m, P p, Stack) { return missing_at_ends(m, p) < 0; }},
    {"equal_stages", [](M m, P p, Stack) { return is_equal_cut(m, p); }},
    {"default_stages",
     [](M m, P p, Stack) {
       return p.stage_layers == default_stage_layers(m.layers, p.degrees.pp);
     }},
    {"cut_shared_indices", [](M m, P p, Stack) { return cuts_shared_indices(m, p); }},
};
constexpr NamedQuantity kOfSoftware[] = {
    {"free_experts", [](M m, P, Stack s) { return has_free_experts(m, s); }},
    {"adapters", [](M, P, Stack s) { return s->training.finetune.adapts; }},
    {"freezes", [](M, P, Stack s) { return s->training.finetune.freezes(); }},
    {"trains_nothing",
     [](M m, P, Stack s) { return trained_counts(m, s->training.finetune).trained == 0; }},
    {"frozen_blocks",
     [](M m, P, Stack s) { return has_frozen_blocks(trained_model(m, s->training.finetune)); }},
    {"splits_experts",
     [](M m, P, Stack s) { return splits_experts(trained_model(m, s->training.finetune)); }},
    {"quantized_base", [](M, P, Stack s) { return s->training.finetune.quantizes_base(); }},
    {"unadapted_part", [](M m, P, Stack) { return !unadapted_part(m).empty(); }},
    {"can_offload", [](M, P, Stack s) { return row_of(s->training.optimizer_kind).can_offload; }},
    {"own_moments",
     [](M, P, Stack s) { return row_of(s->training.optimizer_kind).moment_bytes > 0; }},
    {"whole_matrices",
     [](M, P, Stack s) { return row_of(s->training.optimizer_kind).needs_whole_matrices; }},
    {"lists_zb_h1", [](M, P, Stack s) { return s->choices.only.holds(kZbH1); }},
};

}  // namespace

std::optional<RuleQuantity> rule_quantity(std::string_view name) {
  for (const std::span<const NamedQuantity> rows :
       {std::span<const NamedQuantity>(kOfModel), std::span<const NamedQuantity>(kOfPlan),
        std::span<const NamedQuantity>(kOfSoftware)}) {
    for (const NamedQuantity& row : rows) {
      if (row.name != name) continue;
      RuleQuantity quantity = row.quantity;
      quantity.reads_plan = rows.data() == std::data(kOfPlan);
      return quantity;
    }
  }
  return std::nullopt;
}

std::int64_t missing_at_ends(const ModelSpec& model, const Plan& plan) {
  const std::int64_t chunks = chunk_count(plan);
  for (const std::int64_t missing : {0, 1}) {
    const bool even = (model.layers + 2 * missing) % chunks == 0;
    if (even && even_stage_layers(model.layers, chunks, missing == 1) == plan.stage_layers) {
      return missing;
    }
  }
  return -1;
}

bool titan_casts_nothing(const Plan& plan) {
  const bool shards = plan.zero >= 2 && data_ranks(plan) > 1;
  return plan.dtype == DType::kBFloat16 && !shards && plan.degrees.tp * plan.degrees.pp > 1;
}

std::vector<std::int64_t> equal_stage_layers(std::int64_t layers, std::int64_t stages,
                                             bool counts_embeddings) {
  if ((layers + (counts_embeddings ? 2 : 0)) % stages != 0) return {};
  return even_stage_layers(layers, stages, counts_embeddings);
}

}  // namespace tpsim

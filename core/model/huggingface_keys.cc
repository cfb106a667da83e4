// Keys of a config.json that a family's reader does not read. Three kinds: keys without effect,
// keys that repeat a value of the model, and keys that would change the plan.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/model/huggingface_family.h"

namespace tpsim {
namespace {

// Keys that affect the training step of some family. If the family's reader does not read such a
// key, ignoring it would plan a different model.
constexpr std::string_view kShapingKeys =
    "add_cross_attention alibi altup_num_inputs attention_bias attention_chunk_size "
    "attention_dropout attention_multiplier attn_config attn_logit_softcapping attn_pdrop "
    "attn_temperature_tuning bias clip_qkv cross_attention_layers decoder_sparse_step "
    "dual_chunk_attention_config embd_pdrop embedding_multiplier ffn_config "
    "final_logit_softcapping first_k_dense_replace full_attention_interval head_dim hidden_dropout "
    "hidden_size_per_layer_input hybrid_override_pattern interleave_moe_layer_step "
    "is_encoder_decoder kv_lora_rank layer_types linear_num_value_heads logit_scale logits_scaling "
    "attn_layer_indices mamba_d_state mamba_n_heads mamba_num_heads shared_intermediate_size "
    "mlp_bias mlp_only_layers moe_intermediate_size moe_latent_size moe_layers moe_num_experts "
    "multi_query n_experts n_group n_routed_experts n_shared_experts no_rope_layers norm_topk_prob "
    "num_experts num_experts_per_tok num_key_value_heads num_kv_heads num_kv_shared_layers "
    "num_local_experts num_nextn_predict_layers partial_rotary_factor q_lora_rank qk_layernorm "
    "qk_norm qkv_bias query_pre_attn_scalar resid_pdrop residual_multiplier rope_parameters "
    "rope_scaling rotary_pct shared_expert_intermediate_size sliding_window sliding_window_pattern "
    "ssm_state_size topk_group use_alibi use_bias use_mla use_moe use_parallel_residual "
    "use_qk_norm use_sliding_window word_embed_proj_dim index_topk moe_k moe_topk "
    "moe_num_shared_experts num_shared_experts num_shared_expert scale_emb rotary_dim "
    "attn_type_list layers_block_type conv_L_cache use_qkv_bias residual_dropout "
    "attention_out_bias attention_layers linear_attn_config kv_sharing cla_share_factor "
    "num_mtp_modules altup_active_idx lm_head_bias norm_head qk_layernorm_per_head "
    "moe_layer_start_index moe_layers_enum no_bias attn_res_block_size hc_mult compress_ratios "
    "sparse_attention_config mla_use_output_gate routed_expert_hidden_size block_configs "
    "hybrid_layer_pattern swa_num_attention_heads swa_num_key_value_heads attention_other_setting "
    "use_head_wise_attn_gate attention_k_eq_v enable_moe_block global_head_dim "
    "layers_block_types o_groups o_lora_rank v_head_dim";

// Keys without effect on the training step: text generation, storage of weights, auxiliary losses,
// authors.
constexpr std::string_view kOtherKeys =
    "architectures model_type torch_dtype dtype transformers_version bos_token_id eos_token_id "
    "pad_token_id unk_token_id use_cache auto_map _name_or_path _attn_implementation "
    "_attn_implementation_autoset attn_implementation initializer_range output_router_logits "
    "router_aux_loss_coef pretraining_tp aux_loss_alpha seq_aux ep_size cache_implementation "
    "unsloth_version unsloth_fixed return_dict output_attentions output_hidden_states "
    "task_specific_params n_ctx summary_type summary_activation summary_use_proj "
    "summary_first_dropout summary_proj_to_labels attention_softmax_in_fp32 masked_softmax_fusion "
    "slow_but_exact skip_bias_add skip_bias_add_qkv bias_dropout_fusion offset_alibi "
    "for_fast_flashattn id2label label2id problem_type tokenizer_class keys_to_ignore_at_inference "
    "time_step_limit time_step_floor time_step_max time_step_min time_step_rank mamba_hidden_act "
    "use_mamba_kernels num_logits_to_keep rescale_prenorm_residual residual_in_fp32 expand "
    "head_type vocab_file language gradient_checkpointing classifier_dropout init_std layerdrop "
    "prefix mlp_type tie_encoder_decoder router_jitter_noise input_jitter_noise use_fused_rms_norm "
    "bias_dropout_add_fusion max_window_layers max_sequence_length embedding_dropout "
    "swa_rope_theta chunk_size_feed_forward length_penalty max_length num_beam_groups "
    "num_beams num_return_sequences repetition_penalty temperature top_p typical_p min_length "
    "moe_router_dtype";

bool is_number(const JsonValue& value, double number) {
  const std::int64_t* whole = value.as<std::int64_t>();
  const double* real = value.as<double>();
  if (whole == nullptr && real == nullptr) return false;
  const double given = whole != nullptr ? static_cast<double>(*whole) : *real;
  return std::abs(given - number) <= 1e-9 * std::max(1.0, std::abs(number));
}

bool is_flag(const JsonValue& value, bool flag) {
  const bool* given = value.as<bool>();
  return given != nullptr && *given == flag;
}

// Keys that repeat a number of the model, and the function that returns this number. Keys of one
// row are synonyms.
struct KnownNumber {
  std::string_view keys;
  double (*of_model)(const ModelSpec&);
};
double whole(std::int64_t n) { return static_cast<double>(n); }
constexpr auto kKnownNumbers = std::to_array<KnownNumber>({
    {"partial_rotary_factor rotary_pct",
     [](const ModelSpec& m) { return m.attention.rotary.fraction; }},
    {"head_dim", [](const ModelSpec& m) { return whole(m.attention.head_dim); }},
    {"v_head_dim", [](const ModelSpec& m) { return whole(value_dim(m.attention)); }},
    {"num_key_value_heads num_kv_heads",
     [](const ModelSpec& m) { return whole(m.attention.kv_heads); }},
    {"attention_dropout attn_pdrop", [](const ModelSpec& m) { return m.attention_dropout; }},
    {"hidden_dropout resid_pdrop embd_pdrop residual_dropout",
     [](const ModelSpec& m) { return m.hidden_dropout; }},
    {"num_experts num_local_experts n_routed_experts n_experts moe_num_experts",
     [](const ModelSpec& m) { return whole(m.experts.count); }},
    {"num_experts_per_tok moe_k moe_topk",
     [](const ModelSpec& m) { return whole(m.experts.per_token); }},
    {"moe_intermediate_size",
     [](const ModelSpec& m) { return m.experts.count > 0 ? whole(m.ffn_hidden) : -1; }},
    {"shared_intermediate_size shared_expert_intermediate_size",
     [](const ModelSpec& m) { return whole(m.experts.shared_ffn); }},
    {"n_shared_experts num_shared_experts num_shared_expert moe_num_shared_experts",
     [](const ModelSpec& m) {
       return m.ffn_hidden > 0 ? whole(m.experts.shared_ffn) / whole(m.ffn_hidden) : 0;
     }},
    {"n_group", [](const ModelSpec& m) { return whole(m.experts.router.groups); }},
    {"topk_group", [](const ModelSpec& m) { return whole(m.experts.router.groups_kept); }},
    {"sliding_window", [](const ModelSpec& m) { return whole(m.attention.window); }},
    {"num_nextn_predict_layers num_mtp_modules",
     [](const ModelSpec& m) { return whole(m.ends.prediction_layers); }},
    {"q_lora_rank", [](const ModelSpec& m) { return whole(m.attention.latent.q_rank); }},
    {"kv_lora_rank", [](const ModelSpec& m) { return whole(m.attention.latent.kv_rank); }},
    {"embedding_multiplier scale_emb", [](const ModelSpec& m) { return m.ends.embedding_scale; }},
    {"logit_scale", [](const ModelSpec& m) { return m.ends.logit_scale; }},
    {"logits_scaling", [](const ModelSpec& m) { return 1 / m.ends.logit_scale; }},
    {"residual_multiplier", [](const ModelSpec&) { return 1.0; }},
    {"decoder_sparse_step interleave_moe_layer_step full_attention_interval",
     [](const ModelSpec&) { return 1.0; }},
    {"query_pre_attn_scalar",
     [](const ModelSpec& m) {
       const double scale = m.attention.score.scale;
       return scale > 0 ? 1 / (scale * scale) : whole(m.attention.head_dim);
     }},
});

struct KnownFlag {
  std::string_view keys;
  bool (*of_model)(const ModelSpec&);
};
constexpr auto kKnownFlags = std::to_array<KnownFlag>({
    {"use_qk_norm qk_norm qk_layernorm qk_layernorm_per_head",
     [](const ModelSpec& m) { return m.attention.qk_norm != QkNorm::kNone; }},
    {"attention_bias", [](const ModelSpec& m) { return has_qkv_bias(m) && has_output_bias(m); }},
    {"qkv_bias use_qkv_bias", [](const ModelSpec& m) { return has_qkv_bias(m); }},
    {"attention_out_bias", [](const ModelSpec& m) { return has_output_bias(m); }},
    {"mlp_bias", [](const ModelSpec& m) { return has_mlp_bias(m); }},
    {"bias use_bias", [](const ModelSpec& m) { return has_mlp_bias(m) && has_qkv_bias(m); }},
    {"no_bias", [](const ModelSpec& m) { return !has_mlp_bias(m) && !has_qkv_bias(m); }},
    {"lm_head_bias", [](const ModelSpec& m) { return m.ends.head_bias; }},
    {"norm_topk_prob",
     [](const ModelSpec& m) {
       const RouterShape& router = m.experts.router;
       return router.renormalises || router.score == RouterScore::kChosen;
     }},
    {"use_moe", [](const ModelSpec& m) { return m.experts.count > 0; }},
    {"use_mla", [](const ModelSpec& m) { return m.attention.latent.kv_rank > 0; }},
    {"use_parallel_residual",
     [](const ModelSpec& m) {
       return m.norm_place == NormPlace::kOneParallel || m.norm_place == NormPlace::kTwoParallel;
     }},
});

// Whether no layer has chunks or windows.
bool sees_all(const std::vector<BlockShape>& layers, const ModelSpec& model) {
  const auto is_full = [](const AttentionShape& a) { return reach(a) == 0 && a.chunk == 0; };
  return is_full(model.attention) &&
         std::all_of(layers.begin(), layers.end(),
                     [&](const BlockShape& block) { return is_full(block.attention); });
}

// Whether a value is a list of full attention for all layers, and the model has no windows or
// chunks.
bool is_full_everywhere(const JsonValue& value, const Config& config) {
  const auto* words = value.as<JsonValue::Array>();
  if (words == nullptr || !sees_all(config.layers, config.model)) return false;
  return std::all_of(words->begin(), words->end(), [](const JsonValue& word) {
    const std::string* text = word.as<std::string>();
    return text != nullptr && (*text == "full_attention" || *text == "attention");
  });
}

// Whether a value describes rotary positions without scaling and with the base of the model.
bool is_plain_rotation(const JsonValue& value, const ModelSpec& model) {
  if (value.as<JsonValue::Object>() == nullptr) return false;
  for (const JsonMember& member : *value.as<JsonValue::Object>()) {
    const bool names_kind = member.key == "rope_type" || member.key == "type";
    const std::string* text = member.value.as<std::string>();
    if (names_kind && (text == nullptr || *text != "default")) return false;
    if (member.key == "rope_theta" && !is_number(member.value, model.attention.rope_theta)) {
      return false;
    }
    if (member.key == "factor" && !is_number(member.value, 1)) return false;
  }
  return true;
}

// Whether a key that the family's reader did not read repeats a value of the model.
bool says_what_is(const JsonMember& member, const Config& config) {
  const ModelSpec& model = config.model;
  for (const KnownNumber& known : kKnownNumbers) {
    if (matches_any(member.key, known.keys)) return is_number(member.value, known.of_model(model));
  }
  for (const KnownFlag& known : kKnownFlags) {
    if (matches_any(member.key, known.keys)) return is_flag(member.value, known.of_model(model));
  }
  if (member.key == "layer_types") return is_full_everywhere(member.value, config);
  const bool is_rotation = member.key == "rope_scaling" || member.key == "rope_parameters";
  return is_rotation && is_plain_rotation(member.value, model);
}

std::string shown_value(const JsonValue& value) {
  if (const bool* flag = value.as<bool>()) return *flag ? " = true" : " = false";
  if (const std::int64_t* whole = value.as<std::int64_t>()) return fmt::format(" = {}", *whole);
  if (const double* real = value.as<double>()) return fmt::format(" = {}", *real);
  if (const std::string* text = value.as<std::string>()) return fmt::format(" = '{}'", *text);
  return "";
}

}  // namespace

bool is_neutral(const JsonValue& value) {
  if (value.is_null()) return true;
  if (const bool* flag = value.as<bool>()) return !*flag;
  if (const std::int64_t* whole = value.as<std::int64_t>()) return *whole == 0;
  if (const double* real = value.as<double>()) return *real == 0;
  if (const auto* array = value.as<JsonValue::Array>()) return array->empty();
  if (const auto* object = value.as<JsonValue::Object>()) return object->empty();
  return false;
}

void name_what_was_left(Config& config, const std::string& type) {
  std::string unknown;
  for (const JsonMember* member : config.in.unread()) {
    if (is_neutral(member->value) || matches_any(member->key, kOtherKeys)) continue;
    if (matches_any(member->key, kShapingKeys)) {
      if (says_what_is(*member, config)) continue;
      return config.in.reject(
          member->key,
          fmt::format("tpsim cannot read {} models with {}{}, which would change the plan", type,
                      member->key, shown_value(member->value)),
          "remove the key if the model does not use it, or correct model_type");
    }
    if (member->key == "quantization_config") {
      config.note(
          "quantization_config: ignored, it describes the stored weights; --dtype sets the plan's "
          "dtype");
    } else {
      unknown += (unknown.empty() ? "" : ", ") + member->key;
    }
  }
  if (!unknown.empty()) config.note("ignored keys that do not affect predictions: " + unknown);
}

}  // namespace tpsim

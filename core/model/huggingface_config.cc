// The config.json of Hugging Face models, family by family.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/text.h"
#include "core/json/json_document.h"
#include "core/model/huggingface_family.h"
#include "core/model/model_support.h"

namespace tpsim {
namespace {

std::string model_name(const std::string& file) {
  const std::filesystem::path path(file);
  if (path.filename() != "config.json") return path.stem().string();
  const std::string folder = path.parent_path().filename().string();
  return folder.empty() ? "config" : folder;
}

// Keys that shape the training step in some family. Where one stands in a file whose family's
// reader does not know it, passing it over would plan another model.
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
    "moe_layer_start_index moe_layers_enum no_bias";

// What says nothing of the training step: how text is generated, how weights are stored, losses
// beside the main one, who wrote the file.
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
    "swa_rope_theta chunk_size_feed_forward";

// Families that are asked for, and what of them no block here has.
constexpr auto kKnownToDiffer = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"afmoe", "gated attention with windows beside norms of both sides"},
     {"apertus", "an activation with trained parameters (xIELU)"},
     {"bert", "attention to both sides"},
     {"dbrx", "clipped queries, keys and values"},
     {"deepseek_v32", "attention to positions that an indexer chooses"},
     {"deepseek_v4", "compressed attention and hyper-connections"},
     {"falcon_h1", "attention and Mamba-2 side by side in every block"},
     {"falcon_mamba", "Mamba-1 layers"},
     {"gemma3n_text", "several residual streams and embeddings of every layer"},
     {"gemma4_text", "embeddings of every layer and keys shared by layers"},
     {"glm_moe_dsa", "attention to positions that an indexer chooses"},
     {"jamba", "Mamba-1 layers"},
     {"kimi_linear", "linear attention with a decay of every channel (KDA)"},
     {"lfm2", "short convolutions in place of attention"},
     {"lfm2_moe", "short convolutions in place of attention"},
     {"longcat_flash", "two attentions in a block beside its experts"},
     {"mamba2", "no attention, and a Mamba-2 of its own"},
     {"minicpm3", "latent attention with scaled residuals"},
     {"minimax_m1", "lightning attention"},
     {"minimax_text_01", "lightning attention"},
     {"mllama_text_model", "cross attention to pictures"},
     {"olmo", "norms without weights"},
     {"qwen3_5_text", "a hybrid of another kind than qwen3_next"},
     {"recurrent_gemma", "gated linear recurrences"},
     {"rwkv", "time mixing in place of attention"},
     {"step3_text", "attention with factorised matrices"},
     {"t5", "an encoder beside the decoder"},
     {"xglm", "sinusoidal positions"},
     {"zamba2", "blocks that are shared by layers"}});

// Null, false, zero, and what is empty change nothing.
bool is_neutral(const JsonValue& value) {
  if (value.is_null()) return true;
  if (const bool* flag = value.as<bool>()) return !*flag;
  if (const std::int64_t* whole = value.as<std::int64_t>()) return *whole == 0;
  if (const double* real = value.as<double>()) return *real == 0;
  if (const auto* array = value.as<JsonValue::Array>()) return array->empty();
  if (const auto* object = value.as<JsonValue::Object>()) return object->empty();
  return false;
}

// Names what the family's reader left: what would change the plan is refused, what is not known is
// noted.
void name_what_was_left(Config& config, const std::string& type) {
  std::string unknown;
  for (const JsonMember* member : config.in.unread()) {
    if (is_neutral(member->value) || matches_any(member->key, kOtherKeys)) continue;
    if (matches_any(member->key, kShapingKeys)) {
      return config.in.reject(
          member->key,
          fmt::format("{} models are not read with it, and it would change what is planned", type),
          "take the key out if it has no meaning here, or correct model_type");
    }
    if (member->key == "quantization_config") {
      config.note(
          "quantization_config: how the file's weights are stored; plans have their own "
          "--dtype");
    } else {
      unknown += (unknown.empty() ? "" : ", ") + member->key;
    }
  }
  if (!unknown.empty()) config.note("not read, as nothing here depends on it: " + unknown);
}

std::vector<Family> all_families() {
  std::vector<Family> all;
  for (const auto& families : {dense_families(), classic_families(), expert_families(),
                               hybrid_families(), newer_families(), older_families()}) {
    all.insert(all.end(), families.begin(), families.end());
  }
  return all;
}

std::string supported_types() {
  return fmt::format("supported are {}; write a tpsim model file for others",
                     fmt::join(huggingface_types(), ", "));
}

// The language model inside a model of several senses. Its own type may be left out of the file.
struct TextPart {
  const JsonValue* root;
  std::string type;
  bool is_part = false;
};

Result<TextPart> text_part(const JsonValue& root, const std::string& file) {
  FieldReader in(root, file);
  in.allow_foreign_keys();
  std::string type;
  in.text("model_type", type);
  const JsonValue* inner = nullptr;
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    if (inner == nullptr) inner = root.find(key);
  }
  TPSIM_TRY_STATUS(in.finish());
  if (inner == nullptr || inner->as<JsonValue::Object>() == nullptr) return TextPart{&root, type};
  TextPart part{inner, type + "_text", true};
  FieldReader of_part(*inner, file, "text_config.");
  of_part.allow_foreign_keys();
  of_part.text("model_type", part.type, kOptional);
  TPSIM_TRY_STATUS(of_part.finish());
  return part;
}

bool is_language(std::string_view key) {
  return key == "text_config" || key == "llm_config" || key == "language_config";
}

// What stands beside the text part.
void name_other_parts(const JsonValue& root, ModelSpec& model) {
  for (const JsonMember& member : *root.as<JsonValue::Object>()) {
    const bool is_other = member.key.ends_with("_config") && !is_language(member.key) &&
                          member.key != "quantization_config" && !is_neutral(member.value);
    if (is_other) model.notes.push_back(member.key + ": not planned, the text part is");
  }
}

}  // namespace

std::vector<std::string_view> huggingface_types() {
  std::vector<std::string_view> types;
  for (const Family& family : all_families()) types.push_back(family.type);
  std::sort(types.begin(), types.end());
  return types;
}

Result<ModelSpec> model_from_huggingface(const JsonValue& root, const std::string& file) {
  TPSIM_TRY(const TextPart part, text_part(root, file));
  FieldReader in(*part.root, file, part.is_part ? "text_config." : "");
  in.allow_foreign_keys();
  const std::vector<Family> families = all_families();
  const auto family = std::find_if(families.begin(), families.end(),
                                   [&](const Family& one) { return one.type == part.type; });
  const auto known = std::find_if(kKnownToDiffer.begin(), kKnownToDiffer.end(),
                                  [&](const auto& one) { return one.first == part.type; });
  if (known != kKnownToDiffer.end()) {
    in.reject("model_type",
              fmt::format("'{}' is not supported: it has {}", part.type, known->second),
              "tpsim show families lists what is read");
    return in.finish().error();
  }
  if (family == families.end()) {
    in.reject("model_type", fmt::format("'{}' is not supported", part.type), supported_types());
    return in.finish().error();
  }
  ModelSpec model;
  model.name = model_name(file);
  model.source = fmt::format("Hugging Face {} configuration {}", part.type, file);
  model.family = part.type;
  Config config{in, model, {}};
  in.number("initializer_range", model.initializer_range, {0, 10}, kOptional);
  family->read(config);
  // Every head has its own keys and values where a file knows no sharing.
  if (model.attention.kv_heads == 0) model.attention.kv_heads = model.attention.heads;
  for (BlockShape& block : config.layers) {
    if (block.attention.kv_heads == 0) block.attention.kv_heads = block.attention.heads;
  }
  name_what_was_left(config, part.type);
  TPSIM_TRY_STATUS(in.finish());
  if (!config.layers.empty()) set_blocks(model, config.layers);
  if (part.is_part) {
    name_other_parts(root, model);
    const JsonValue* tied = root.find("tie_word_embeddings");
    const bool says = tied != nullptr && tied->as<bool>() != nullptr &&
                      part.root->find("tie_word_embeddings") == nullptr;
    if (says) model.tied_embedding = *tied->as<bool>();
  }
  TPSIM_TRY_STATUS(at_file(validate(model), file));
  return model;
}

}  // namespace tpsim

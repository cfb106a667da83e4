// Imports Primus' YAML, which states a framework, presets of the framework and of a model, and
// overrides. Source of presets and defaults: primus/configs of AMD-AGI/Primus at fd1eeab.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "formats/shell_script.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
namespace {

constexpr int kDeepest = 8;
constexpr int kFromPreset = -1;  // marks settings from a preset, instead of a line number

void put_over(const std::vector<FlatSetting>& more, std::vector<FlatSetting>& settings) {
  for (const FlatSetting& one : more) {
    std::erase_if(settings, [&](const FlatSetting& own) { return own.key == one.key; });
    settings.push_back(one);
  }
}

// Reads a preset and the presets that it extends. Returns false if a file is missing.
Result<bool> read_preset(const std::string& path, const ImportInputs& inputs, int depth,
                         std::vector<FlatSetting>& settings) {
  const auto text = text_of_named(path, inputs);
  if (!text || depth > kDeepest) return false;
  TPSIM_TRY(std::vector<FlatSetting> own, flat_settings({path, *text, path}));
  std::vector<FlatSetting> plain;
  for (FlatSetting& one : own) {
    const bool extends = one.key.starts_with("extends.") || one.key.starts_with("includes.") ||
                         one.key == "extends" || one.key == "includes" || one.key == "bases";
    if (!extends) {
      one.line = kFromPreset;
      plain.push_back(std::move(one));
      continue;
    }
    const std::string folder = path.substr(0, path.find_last_of('/') + 1);
    TPSIM_TRY(const bool is_there,
              read_preset(plain_path(folder + one.value), inputs, depth + 1, settings));
    static_cast<void>(is_there);
  }
  put_over(plain, settings);
  return true;
}

std::string module_prefix(const std::vector<FlatSetting>& settings) {
  constexpr std::string_view kEnd = ".framework";
  for (const FlatSetting& one : settings) {
    if (one.key.starts_with("modules.") && one.key.ends_with(kEnd)) {
      return one.key.substr(0, one.key.size() - kEnd.size() + 1);
    }
  }
  return "modules.pre_trainer.";
}

// Returns the file's name without folder and extension, to look up the model in the catalogue:
// "llama3.1_8B" for "llama3.1_8B.yaml".
std::string stem_of(std::string name) {
  name = name.substr(name.find_last_of('/') + 1);
  for (const char* end : {".yaml", ".yml"}) {
    if (name.ends_with(end)) name.resize(name.size() - std::string_view(end).size());
  }
  return name;
}

// Keys of presets that are read because they affect a plan. Other keys have the framework's
// defaults.
constexpr std::string_view kPresetKeys =
    "num_layers hidden_size ffn_hidden_size num_attention_heads group_query_attention "
    "num_query_groups kv_channels seq_length max_position_embeddings position_embedding_type "
    "rotary_base rotary_percent normalization norm_epsilon swiglu squared_relu "
    "untie_embeddings_and_output_weights add_bias_linear disable_bias_linear add_qkv_bias "
    "qk_layernorm attention_dropout hidden_dropout micro_batch_size global_batch_size bf16 fp16 "
    "use_distributed_optimizer use_flash_attn overlap_grad_reduce overlap_param_gather "
    "recompute_granularity recompute_method recompute_num_layers tensor_model_parallel_size "
    "pipeline_model_parallel_size context_parallel_size expert_model_parallel_size "
    "sequence_parallel num_experts moe_router_topk moe_ffn_hidden_size moe_layer_freq "
    "moe_shared_expert_intermediate_size moe_grouped_gemm moe_token_dispatcher_type "
    "moe_router_score_function moe_router_enable_expert_bias moe_router_topk_scaling_factor "
    "multi_latent_attention mtp_num_layers grad_reduce_in_bf16 window_size vocab_size "
    "padded_vocab_size apply_rope_fusion";
constexpr std::string_view kLatentKeys =
    "q_lora_rank kv_lora_rank qk_head_dim qk_pos_emb_head_dim v_head_dim";
constexpr std::string_view kTitanPresetKeys =
    "model.name model.flavor model.hf_assets_path training.local_batch_size training.seq_len "
    "training.mixed_precision_param training.mixed_precision_reduce activation_checkpoint.mode "
    "activation_checkpoint.selective_ac_option compile.enable compile.components*";

}  // namespace

// Sets values that follow from several settings. If a preset states layers and hidden size, these
// define the model, and its name is not used.
void derive_primus(ProgramSettings& settings, LeftSettings&) {
  if (settings.is("@no-transposes", "true")) {
    settings.note("no_fp8_weight_transpose_cache is not modelled: memory is an upper bound");
  }
  if (settings.has("num-layers") && settings.has("hidden-size")) settings.erase("@model");
  const std::int64_t groups = settings.number("num-query-groups", 0);
  if (groups > 0 && !settings.has("group-query-attention")) {
    settings.put("group-query-attention", "true");
  }
}

Result<std::vector<FlatSetting>> expand_primus(std::vector<FlatSetting> settings, const LaunchFile&,
                                               const ImportInputs& inputs, ProgramSettings& out) {
  const std::string module = module_prefix(settings);
  const std::string framework = setting_value(settings, module + "framework");
  std::vector<FlatSetting> all;
  for (const auto& [kind, key] : {std::pair{"modules", "config"}, std::pair{"models", "model"}}) {
    const std::string name = setting_value(settings, module + key);
    if (name.empty()) continue;
    const std::string path = fmt::format("primus/configs/{}/{}/{}", kind, framework, name);
    TPSIM_TRY(const bool is_there, read_preset(path, inputs, 0, all));
    if (is_there) continue;
    out.note(fmt::format("the file names the preset {}, which was not found: {}", path,
                         key == std::string_view("model")
                             ? "the catalogue's model of this name is predicted"
                             : "the defaults of Primus in 2026 are assumed"));
  }
  const std::string model = stem_of(setting_value(settings, module + "model"));
  if (!model.empty()) out.put("@model", model);
  const std::string overrides = module + "overrides.";
  std::vector<FlatSetting> own;
  for (const FlatSetting& one : settings) {
    if (!one.key.starts_with(overrides)) continue;
    own.push_back(one);
    own.back().key = one.key.substr(overrides.size());
    if (own.back().key == "sequence_parallel" && one.value == "1") own.back().value = "true";
  }
  const std::string_view used = framework == "torchtitan" ? kTitanPresetKeys : kPresetKeys;
  const bool has_latents = in_lower_case(setting_value(all, "multi_latent_attention")) == "true";
  std::erase_if(all, [&](const FlatSetting& one) {
    const bool is_latent = matches_any(one.key, kLatentKeys);
    if (is_latent ? has_latents : matches_any(one.key, used)) return false;
    out.outside.push_back(one.key);
    return true;
  });
  put_over(own, all);
  return all;
}

}  // namespace tpsim

// Families that mix attention with recurrences: Nemotron-H, Bamba and Granite 4 (Mamba-2),
// Qwen3-Next, Qwen3.5 and 3.6 (gated delta nets).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/model/huggingface_family.h"

namespace tpsim {
namespace {

void nemotron_h_sizes(Config& config) {
  ModelSpec& model = config.model;
  AttentionShape& attention = model.attention;
  // Newer files state the number of layers only through their list.
  const bool has_list = config.in.is_list("layers_block_type");
  read_sizes(config, {.layers = has_list ? "" : "num_hidden_layers"});
  attention.kv_heads = config.integer("num_key_value_heads", attention.heads);
  attention.head_dim = config.integer("attention_head_dim", config.integer("head_dim", 0));
  share_width(config, "hidden_size");
  attention.position = PositionKind::kNone;
  attention.window = config.integer_or_none("sliding_window", 0, kPositionRange);
  read_attention_dropout(config);
  model.hidden_dropout = config.number("hidden_dropout", 0, kDropoutRange);
  read_positions(config, "max_position_embeddings", 4096);
  model.norm_epsilon =
      config.number("layer_norm_epsilon", config.number("norm_eps", 1e-5, {0, 1}), {0, 1});
  // No layer has rotary positions.
  for (const char* key : {"partial_rotary_factor", "rope_theta"}) config.pass_over(key);
  model.norm = NormKind::kRmsNorm;
  model.tied_embedding = config.flag("tie_word_embeddings", false);
  model.linear_bias = model.fused_qkv = false;
  llama_biases(config);
  read_activation(config, "mlp_hidden_act", {{"relu2", MlpKind::kReluSquared}});
}

// Nemotron 3: DeepSeek's router, experts without a gate.
BlockShape nemotron_experts(Config& config) {
  BlockShape block;
  block.mixer = MixerKind::kNone;
  // Blocks with experts become kind 0, and model files require the attention heads of kind 0.
  block.attention = config.model.attention;
  FieldReader& in = config.in;
  ExpertShape& experts = block.experts;
  in.integer("n_routed_experts", experts.count, kExpertRange);
  in.integer("num_experts_per_tok", experts.per_token, kExpertRange);
  in.integer("moe_intermediate_size", block.ffn_hidden, {});
  experts.dropless = true;
  experts.shared_ffn = config.integer("n_shared_experts", 1, {0, 1 << 10}) *
                       config.integer("moe_shared_expert_intermediate_size", 0, {0, 1 << 24});
  experts.latent = config.integer_or_none("moe_latent_size", 0, {0, 1 << 24});
  RouterShape& router = experts.router;
  sigmoid_router(router);
  router.renormalises = config.flag("norm_topk_prob", true);
  router.scaling = config.number("routed_scaling_factor", 1, {0, 1e6});
  router.groups = config.integer("n_group", 1, kExpertRange);
  router.groups_kept = config.integer("topk_group", 1, kExpertRange);
  return block;
}

// Returns the kinds of the layers, one letter each, from hybrid_override_pattern or from the list
// layers_block_type of newer files.
std::string nemotron_pattern(Config& config) {
  std::string pattern;
  if (!config.in.is_list("layers_block_type")) {
    config.in.text("hybrid_override_pattern", pattern);
    return pattern;
  }
  std::vector<std::string> words;
  config.in.texts("layers_block_type", words);
  constexpr auto kLetters = std::to_array<std::pair<std::string_view, char>>(
      {{"mamba", 'M'}, {"moe", 'E'}, {"mlp", '-'}, {"attention", '*'}});
  for (const std::string& word : words) {
    const auto found = std::find_if(kLetters.begin(), kLetters.end(),
                                    [&](const auto& one) { return one.first == word; });
    if (found == kLetters.end()) {
      config.in.reject("layers_block_type", fmt::format("'{}' is not a layer type", word),
                       "layer types are mamba, moe, mlp and attention");
      return pattern;
    }
    pattern += found->second;
  }
  const auto count = static_cast<std::int64_t>(pattern.size());
  if (config.integer("num_hidden_layers", count, kLayerRange) != count) {
    config.in.reject("layers_block_type",
                     fmt::format("it has {} entries, but num_hidden_layers differs", count));
  }
  config.model.layers = count;
  return pattern;
}

void read_nemotron_h(Config& config) {
  nemotron_h_sizes(config);
  FieldReader& in = config.in;
  RecurrentShape recurrent;
  in.integer("mamba_num_heads", recurrent.heads, {});
  in.integer("mamba_head_dim", recurrent.value_dim, {});
  in.integer("n_groups", recurrent.key_heads, {});
  in.integer("ssm_state_size", recurrent.key_dim, {});
  recurrent.convolution = config.integer("conv_kernel", 4);
  recurrent.convolution_bias = config.flag("use_conv_bias", true);
  recurrent.chunk = config.integer("chunk_size", 128);
  config.require_flag("use_bias", false, "biases of Mamba's projections are not modelled");
  config.require_flag("mamba_proj_bias", false, "biases of Mamba's projections are not modelled");
  const std::string pattern = nemotron_pattern(config);
  for (const char* key : {"mtp_hybrid_override_pattern", "mtp_layers_block_type",
                          "moe_shared_expert_overlap", "mamba_ssm_cache_dtype"}) {
    config.pass_over(key);
  }
  read_prediction_layers(config);
  spread(config);
  const bool has_experts = pattern.find('E') != std::string::npos;
  const BlockShape experts = has_experts ? nemotron_experts(config) : BlockShape{};
  if (pattern.size() != config.layers.size()) {
    return config.reject_length("hybrid_override_pattern", pattern.size());
  }
  // A pattern without attention layers: all blocks keep the heads that the file states.
  const bool attends = pattern.find('*') != std::string::npos;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    BlockShape& block = config.layers[i];
    BlockShape bare;
    if (!attends) bare.attention = block.attention;
    if (pattern[i] == 'M') {
      bare.mixer = MixerKind::kMamba2;
      bare.recurrent = recurrent;
    } else if (pattern[i] == '-') {
      bare.mixer = MixerKind::kNone;
      bare.ffn_hidden = block.ffn_hidden;
    } else if (pattern[i] == 'E') {
      bare = experts;
    } else if (pattern[i] == '*') {
      bare.attention = block.attention;
    } else {
      in.reject("hybrid_override_pattern", fmt::format("'{}' is not a layer type", pattern[i]),
                "use M, -, E and *");
    }
    block = bare;
  }
}

// Makes the gated delta nets: the linear layers of layer_types, or by default all but every
// full_attention_interval-th layer.
void qwen_delta_layers(Config& config) {
  FieldReader& in = config.in;
  RecurrentShape recurrent;
  in.integer("linear_num_value_heads", recurrent.heads, {});
  in.integer("linear_num_key_heads", recurrent.key_heads, {});
  in.integer("linear_key_head_dim", recurrent.key_dim, {});
  in.integer("linear_value_head_dim", recurrent.value_dim, {});
  recurrent.convolution = config.integer("linear_conv_kernel_dim", 4);
  recurrent.chunk = 64;  // as in flash-linear-attention's kernels
  config.require_flag("use_sliding_window", false,
                      "attention windows are not modelled for this family");
  spread(config);
  const std::int64_t period = config.integer("full_attention_interval", 4, {1, 1 << 20});
  const std::vector<bool> linear =
      layers_that_say(config, "layer_types", "linear_attention", "full_attention");
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const bool is_linear =
        linear.empty() ? (static_cast<std::int64_t>(i) + 1) % period != 0 : linear[i];
    if (is_linear) make_recurrent(config.layers[i], MixerKind::kDeltaNet, recurrent);
  }
}

void qwen_gated_attention(Config& config, const SizeKeys& sizes) {
  ModelSpec& model = config.model;
  model.attention.rotary.fraction = 0.25;
  read_llama_keys(config, {.head_dim = 256, .positions = 32768, .sizes = sizes});
  model.norm_plus_one = true;
  model.attention.qk_norm = QkNorm::kHead;
  model.attention.output_gate = config.flag("attn_output_gate", true);
  attention_biases(config);
}

void qwen_gated_experts(Config& config) {
  ExpertShape& experts = config.model.experts;
  read_experts(config, "num_experts", "num_experts_per_tok");
  config.in.integer("moe_intermediate_size", config.model.ffn_hidden, {});
  experts.shared_ffn = config.integer("shared_expert_intermediate_size", 512, {0, 1 << 24});
  experts.shared_gate = experts.shared_ffn > 0;
  softmax_router(config, true);
}

void read_qwen3_next(Config& config) {
  qwen_gated_attention(config, {});
  const std::int64_t dense_width = config.model.ffn_hidden;
  qwen_gated_experts(config);
  qwen_delta_layers(config);
  qwen_dense_layers(config, dense_width);
}

// Qwen3.5 and 3.6, dense or with experts in every layer.
void read_qwen3_5(Config& config) {
  const bool has_experts = config.in.has("num_experts");
  qwen_gated_attention(config, {.ffn = has_experts ? "" : "intermediate_size"});
  if (has_experts) qwen_gated_experts(config);
  config.model.ends.prediction_layers = config.integer("mtp_num_hidden_layers", 0, {0, 1 << 10});
  config.require_flag("mtp_use_dedicated_embeddings", false,
                      "separate word embeddings of MTP layers are not modelled");
  for (const char* key : {"mamba_ssm_dtype", "intermediate_size"}) config.pass_over(key);
  qwen_delta_layers(config);
  if (has_experts) qwen_dense_layers(config, config.model.ffn_hidden);
}

// Reads the Mamba-2 keys of Bamba and Granite 4. Every block has a feed-forward part after the
// mixer.
RecurrentShape mamba_keys(Config& config) {
  RecurrentShape recurrent;
  config.in.integer("mamba_n_heads", recurrent.heads, {});
  config.in.integer("mamba_d_state", recurrent.key_dim, {});
  recurrent.key_heads = config.integer("mamba_n_groups", 1);
  const std::int64_t width = config.integer("mamba_expand", 2, {1, 1 << 10}) * config.model.hidden;
  const std::int64_t heads = std::max<std::int64_t>(1, recurrent.heads);
  recurrent.value_dim = config.integer("mamba_d_head", width / heads);
  if (recurrent.heads > 0 && recurrent.heads * recurrent.value_dim != width) {
    config.in.reject(
        "mamba_n_heads",
        fmt::format("{} heads of width {} do not equal mamba_expand x hidden_size = {}",
                    recurrent.heads, recurrent.value_dim, width));
  }
  recurrent.convolution = config.integer("mamba_d_conv", 4);
  recurrent.convolution_bias = config.flag("mamba_conv_bias", true);
  recurrent.chunk = config.integer("mamba_chunk_size", 256);
  config.require_flag("mamba_proj_bias", false, "biases of Mamba's projections are not modelled");
  return recurrent;
}

void read_bamba(Config& config) {
  ModelSpec& model = config.model;
  model.attention.rotary.fraction = 0.5;
  read_llama_keys(config, {.positions = 262144, .epsilon = 1e-5});
  llama_biases(config);
  const RecurrentShape recurrent = mamba_keys(config);
  std::vector<std::int64_t> attends;
  config.in.integers("attn_layer_indices", attends, {0, 1 << 20}, kOptional);
  spread(config);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const bool here = std::count(attends.begin(), attends.end(), static_cast<std::int64_t>(i)) > 0;
    if (!here) make_recurrent(config.layers[i], MixerKind::kMamba2, recurrent);
  }
}

void read_granite_hybrid(Config& config) {
  ModelSpec& model = config.model;
  read_llama_keys(config, {.positions = 2048, .tied = true});
  granite_multipliers(config);
  attention_biases(config);
  if (config.text("position_embedding_type", "rope") == "nope") {
    model.attention.position = PositionKind::kNone;
    model.attention.rotary = {};
  }
  const std::int64_t shared = config.integer("shared_intermediate_size", 1024);
  ExpertShape& experts = model.experts;
  experts.count = config.integer_or_none("num_local_experts", 8, {0, kExpertRange.most});
  if (experts.count > 0) {
    config.in.integer("num_experts_per_tok", experts.per_token, kExpertRange);
    experts.dropless = true;
    experts.shared_ffn = shared;
  } else {
    config.integer("num_experts_per_tok", 0, {0, kExpertRange.most});
    model.ffn_hidden = shared;
  }
  const RecurrentShape recurrent = mamba_keys(config);
  spread(config);
  const std::vector<bool> recurs = layers_that_say(config, "layer_types", "mamba", "attention");
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (!recurs.empty() && !recurs[i]) continue;
    make_recurrent(config.layers[i], MixerKind::kMamba2, recurrent);
  }
}

constexpr std::array kHybrid = {
    Family{"bamba", read_bamba},           Family{"granitemoehybrid", read_granite_hybrid},
    Family{"nemotron_h", read_nemotron_h}, Family{"qwen3_next", read_qwen3_next},
    Family{"qwen3_5_text", read_qwen3_5},  Family{"qwen3_5_moe_text", read_qwen3_5}};

}  // namespace

void make_recurrent(BlockShape& block, MixerKind mixer, const RecurrentShape& recurrent) {
  block.mixer = mixer;
  block.attention = {};
  block.recurrent = recurrent;
}

void note_residual_multiplier(Config& config, std::string_view key, double value) {
  if (value == 1) return;
  config.note(
      fmt::format("{} = {}: adds no cost, since it is part of the residual op", key, value));
}

void granite_multipliers(Config& config) {
  ModelSpec& model = config.model;
  model.ends.embedding_scale = config.number("embedding_multiplier", 1, {1e-9, 1e9});
  model.ends.logit_scale = 1 / config.number("logits_scaling", 1, {1e-9, 1e9});
  model.attention.score.scale = config.number("attention_multiplier", 1, {1e-9, 1e9});
  note_residual_multiplier(config, "residual_multiplier",
                           config.number("residual_multiplier", 1, {1e-9, 1e9}));
}

std::span<const Family> hybrid_families() { return kHybrid; }

}  // namespace tpsim

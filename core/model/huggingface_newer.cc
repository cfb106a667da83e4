// Families of 2024 and 2025 with LLaMA's or DeepSeek's blocks under other keys and with small
// changes. Dense families first, then families with experts.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/huggingface_family.h"

namespace tpsim {
namespace {

void set_attention_biases(ModelSpec& model, bool inputs, bool output) {
  model.attention.qkv_bias = inputs;
  model.attention.output_bias = output;
}

void drop_positions(BlockShape& block) {
  block.attention.position = PositionKind::kNone;
  block.attention.rotary = {};
}

void read_smollm3(Config& config) {
  read_llama_keys(config, {.positions = 32768, .rope_theta = 2e6, .tied = true});
  llama_biases(config);
  spread(config);
  const std::vector<bool> turns = rotary_layers(config);
  const bool uses_windows = config.flag("use_sliding_window", false);
  const std::int64_t window = config.integer_or_none("sliding_window", 0, kPositionRange);
  sliding_layers(config, uses_windows ? window : 0,
                 [&](std::int64_t i) { return !turns[static_cast<std::size_t>(i)]; });
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (!turns[i]) drop_positions(config.layers[i]);
  }
}

void read_seed_oss(Config& config) {
  read_llama_keys(config, {.head_dim = 128, .positions = 524288});
  const bool inputs = config.flag("attention_bias", true);
  set_attention_biases(config.model, inputs, config.flag("attention_out_bias", false));
  config.model.mlp_bias = config.flag("mlp_bias", false);
  config.model.hidden_dropout = config.number("residual_dropout", 0.1, kDropoutRange);
}

void read_helium(Config& config) {
  read_llama_keys(config, {.head_dim = 128, .positions = 4096, .epsilon = 1e-8});
  llama_biases(config);
}

// Arcee: LLaMA with a feed-forward part of two matrices.
void read_arcee(Config& config) {
  read_llama_keys(config, {.positions = 4096, .epsilon = 1e-5, .mlp = MlpKind::kReluSquared});
  llama_biases(config);
}

void read_cwm(Config& config) {
  read_llama_keys(config,
                  {.head_dim = 128, .positions = 131072, .rope_theta = 1e6, .epsilon = 1e-5});
  const std::int64_t window = config.integer("sliding_window", 8192, kPositionRange);
  spread(config);
  sliding_layers(config, window, [](std::int64_t i) { return i % 4 != 0; });
}

void read_ministral(Config& config) {
  read_llama_keys(config, {.positions = 131072});
  const std::int64_t window = config.integer_or_none("sliding_window", 4096, kPositionRange);
  spread(config);
  sliding_layers(config, window, [](std::int64_t) { return true; });
}

void read_ministral3(Config& config) {
  read_llama_keys(config,
                  {.head_dim = 128, .positions = 262144, .rope_theta = 1e6, .epsilon = 1e-5});
  config.model.attention.window = config.integer_or_none("sliding_window", 0, kPositionRange);
}

// EXAONE 3: LLaMA under other keys.
void read_exaone(Config& config) {
  read_llama_keys(config, {.positions = 2048,
                           .epsilon = 1e-5,
                           .sizes = {.layers = "num_layers"},
                           .epsilon_key = "layer_norm_epsilon",
                           .activation_key = "activation_function"});
  config.model.hidden_dropout = config.number("embed_dropout", 0, kDropoutRange);
}

// EXAONE 4: norms after the branches, norms of q and k. In models with windows, full-attention
// layers have no positions.
void read_exaone4(Config& config) {
  read_llama_keys(config, {.positions = 2048, .epsilon = 1e-5});
  config.model.attention.qk_norm = QkNorm::kHead;
  config.model.norm_place = NormPlace::kAfter;
  const std::int64_t window = config.integer_or_none("sliding_window", 4096, kPositionRange);
  std::int64_t period = 4;
  // With layer_types, sliding_window_pattern is a text ("LLLG") that repeats it.
  if (!config.in.has("layer_types")) {
    period = std::max<std::int64_t>(
        1, config.integer_or_none("sliding_window_pattern", 4, {1, 1 << 20}));
  } else {
    config.pass_over("sliding_window_pattern");
  }
  spread(config);
  sliding_layers(config, window,
                 [&](std::int64_t i) { return window > 0 && (i + 1) % period != 0; });
  for (BlockShape& block : config.layers) {
    if (window > 0 && block.attention.window == 0) drop_positions(block);
  }
}

void read_internlm3(Config& config) {
  read_llama_keys(config, {.positions = 32768, .epsilon = 1e-5});
  set_attention_biases(config.model, config.flag("qkv_bias", false), false);
  const bool biases = config.flag("bias", false);
  config.model.attention.output_bias = biases;
  config.model.mlp_bias = biases;
}

void read_mimo(Config& config) {
  read_qwen2(config);
  config.model.attention.qkv_bias = config.flag("attention_bias", true);
  for (BlockShape& block : config.layers) {
    block.attention.qkv_bias = config.model.attention.qkv_bias;
  }
  read_prediction_layers(config);
}

void read_minicpm(Config& config) {
  read_llama_keys(config, {.positions = 2048, .tied = true});
  ModelSpec& model = config.model;
  model.ends.embedding_scale = config.number("scale_emb", 1, {1e-9, 1e9});
  model.ends.logit_scale = static_cast<double>(config.integer("dim_model_base", 1)) /
                           static_cast<double>(std::max<std::int64_t>(1, model.hidden));
  note_residual_multiplier(config, "scale_depth", config.number("scale_depth", 1, {1e-9, 1e9}));
  llama_biases(config);
}

void read_granite(Config& config) {
  read_llama_keys(config, {.positions = 2048});
  granite_multipliers(config);
  llama_biases(config);
}

void granite_experts(Config& config) {
  read_granite(config);
  config.model.mlp_bias = false;
  read_experts(config, "num_local_experts", "num_experts_per_tok");
}

void read_granite_shared(Config& config) {
  granite_experts(config);
  config.model.experts.shared_ffn = config.integer("shared_intermediate_size", 0, {0, 1 << 24});
}

void ernie_keys(Config& config) {
  read_llama_keys(config,
                  {.positions = 131072, .rope_theta = 500000, .epsilon = 1e-5, .tied = true});
  ModelSpec& model = config.model;
  model.attention.rotary.neighbours = true;
  const bool biases = config.flag("use_bias", false);
  set_attention_biases(model, biases, biases);
  model.mlp_bias = biases;
  read_prediction_layers(config);
}

void read_ernie_moe(Config& config) {
  ernie_keys(config);
  ModelSpec& model = config.model;
  if (model.mlp_bias) config.in.reject("use_bias", "biases of these experts are not modelled");
  const std::int64_t dense_width = model.ffn_hidden;
  read_experts(config, "moe_num_experts", "moe_k");
  config.in.integer("moe_intermediate_size", model.ffn_hidden, {});
  ExpertShape& experts = model.experts;
  experts.shared_ffn =
      config.integer_or_none("moe_num_shared_experts", 0, {0, 1 << 10}) * model.ffn_hidden;
  experts.router.score = RouterScore::kAll;
  experts.router.renormalises = true;
  experts.router.correction_bias = config.flag("moe_use_aux_free", true);
  spread(config);
  const std::int64_t first = config.integer("moe_layer_start_index", 1, {0, 1 << 20});
  std::int64_t last = model.layers - 1;
  if (!config.in.is_null("moe_layer_end_index")) {
    const std::int64_t said = config.integer("moe_layer_end_index", -1, {-1, 1 << 20});
    if (said >= 0) last = said;
  }
  const std::int64_t step = config.integer("moe_layer_interval", 1, {1, 1 << 20});
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(config.layers.size()); ++i) {
    if (i < first || i > last || (i + 1) % step != 0) make_dense(config, i, dense_width);
  }
}

void hunyuan_keys(Config& config) {
  read_llama_keys(config, {.positions = 2048, .epsilon = 1e-5});
  attention_biases(config);
  config.model.attention.qk_norm = config.flag("use_qk_norm", true) ? QkNorm::kHead : QkNorm::kNone;
  config.require_flag("use_cla", false, "keys and values shared between layers are not modelled");
}

// Reads a number, or a list of equal numbers per layer.
std::int64_t for_every_layer(Config& config, std::string_view key, std::int64_t otherwise) {
  if (!config.in.is_list(key)) return config.integer(key, otherwise, {0, 1 << 24});
  std::vector<std::int64_t> each;
  config.in.integers(key, each, {0, 1 << 24});
  const bool same =
      std::all_of(each.begin(), each.end(), [&](std::int64_t n) { return n == each.front(); });
  if (each.size() < static_cast<std::size_t>(config.model.layers)) {
    config.reject_length(key, each.size());
    return otherwise;
  }
  if (!same) {
    config.in.reject(key, "values that differ between layers are not modelled here");
    return otherwise;
  }
  return each.front();
}

void read_hunyuan_moe(Config& config) {
  hunyuan_keys(config);
  ModelSpec& model = config.model;
  ExpertShape& experts = model.experts;
  experts.count = for_every_layer(config, "num_experts", 1);
  experts.per_token = for_every_layer(config, "moe_topk", 1);
  experts.dropless = true;
  if (experts.per_token < 1 || experts.per_token > experts.count) {
    config.in.reject("moe_topk", fmt::format("{} is not between 1 and the number of experts, {}",
                                             experts.per_token, experts.count));
  }
  const std::int64_t shared = for_every_layer(config, "num_shared_expert", 1);
  const bool has_shared = config.flag("use_mixed_mlp_moe", true);
  model.ffn_hidden = for_every_layer(config, "moe_intermediate_size", model.ffn_hidden);
  experts.shared_ffn = has_shared ? shared * model.ffn_hidden : 0;
  experts.router.score = RouterScore::kAll;
  experts.router.renormalises = true;
  config.require_flag("moe_drop_tokens", false, "dropped tokens are not modelled here");
}

void read_dots1(Config& config) {
  read_llama_keys(config, {.positions = 2048});
  const std::int64_t dense_width = config.model.ffn_hidden;
  attention_biases(config);
  config.model.attention.qk_norm = QkNorm::kHead;
  deepseek_experts(config);
  sigmoid_router(config.model.experts.router);
  config.text("topk_method", "noaux_tc");
  config.text("scoring_func", "sigmoid");
  deepseek_dense_layers(config, dense_width);
  const std::int64_t window = config.integer_or_none("sliding_window", 4096, kPositionRange);
  const std::int64_t first = config.integer("max_window_layers", 62, {0, 1 << 20});
  sliding_layers(config, window, [&](std::int64_t i) { return i >= first; });
}

// The first DeepSeek MoE model: attention as in LLaMA.
void read_deepseek(Config& config) {
  read_llama_keys(config, {.positions = 2048});
  const std::int64_t dense_width = config.model.ffn_hidden;
  attention_biases(config);
  deepseek_experts(config);
  config.text("scoring_func", "softmax");
  config.model.experts.router.score = RouterScore::kAll;
  deepseek_dense_layers(config, dense_width);
}

// Ling and Ring. The second generation has norms of q and k, rotates half of every head, and uses a
// DeepSeek router.
void read_bailing(Config& config) {
  const bool is_second = config.text("score_function", "softmax") == "sigmoid" ||
                         config.model.family == "bailing_moe_v2";
  ModelSpec& model = config.model;
  if (is_second) model.attention.rotary.fraction = 0.5;
  read_llama_keys(config, {.positions = 16384});
  const std::int64_t dense_width = model.ffn_hidden;
  set_attention_biases(model, config.flag("use_qkv_bias", false), config.flag("use_bias", false));
  model.attention.qk_norm = config.flag("use_qk_norm", is_second) ? QkNorm::kHead : QkNorm::kNone;
  read_experts(config, "num_experts", "num_experts_per_tok");
  config.in.integer("moe_intermediate_size", model.ffn_hidden, {});
  ExpertShape& experts = model.experts;
  const std::int64_t shared = config.integer_or_none("num_shared_experts", 0, {0, 1 << 10});
  experts.shared_ffn = shared * config.integer("moe_shared_expert_intermediate_size",
                                               model.ffn_hidden, {0, 1 << 24});
  RouterShape& router = experts.router;
  softmax_router(config, true);
  router.scaling = config.number("routed_scaling_factor", 1, {1e-9, 1e9});
  if (is_second) {
    sigmoid_router(router);
    router.groups = config.integer("n_group", 1, kExpertRange);
    router.groups_kept = config.integer("topk_group", router.groups, kExpertRange);
    config.flag("moe_router_enable_expert_bias", true);
  }
  config.require_flag("norm_head", false, "a normalized output head is not modelled");
  spread(config);
  const std::int64_t dense = config.integer("first_k_dense_replace", 0, {0, 1 << 20});
  for (std::int64_t i = 0; i < std::min(dense, model.layers); ++i) {
    if (i < static_cast<std::int64_t>(config.layers.size())) make_dense(config, i, dense_width);
  }
  read_prediction_layers(config);
}

void read_minimax_m2(Config& config) {
  ModelSpec& model = config.model;
  const std::int64_t head_dim = config.integer("head_dim", 128);
  const std::int64_t turned = config.integer("rotary_dim", head_dim);
  model.attention.rotary.fraction =
      static_cast<double>(turned) / static_cast<double>(std::max<std::int64_t>(1, head_dim));
  read_llama_keys(config, {.head_dim = 128, .positions = 196608, .rope_theta = 5e6});
  model.attention.qk_norm = config.flag("use_qk_norm", true) ? QkNorm::kWidth : QkNorm::kNone;
  config.text("qk_norm_type", "per_layer");
  read_experts(config, "num_local_experts", "num_experts_per_tok");
  RouterShape& router = model.experts.router;
  sigmoid_router(router);
  router.correction_bias = config.flag("use_routing_bias", true);
  router.renormalises = true;
  config.require_text("scoring_func", "sigmoid");
  model.experts.shared_ffn = config.integer("shared_intermediate_size", 0, {0, 1 << 24});
  const std::int64_t modules = config.integer("num_mtp_modules", 0, {0, 1 << 10});
  if (config.flag("use_mtp", false) && modules > 0) {
    config.note(fmt::format("num_mtp_modules = {}: MTP is neither counted nor predicted", modules));
  }
  for (const char* key : {"attn_type_list", "mtp_transformer_layers"}) config.pass_over(key);
}

// The type "minimax" has two uses: the first files of MiniMax-M2, and MiniMax-Text-01.
void read_minimax(Config& config) {
  if (config.in.has("use_routing_bias")) return read_minimax_m2(config);
  read_minimax_text(config);
}

void read_flex_olmo(Config& config) {
  read_olmo2(config);
  read_experts(config, "num_experts", "num_experts_per_tok");
  softmax_router(config, false);
}

// Phi 3.5: LayerNorm, and biases except in the experts.
void read_phimoe(Config& config) {
  read_llama_keys(config, {.positions = 131'072, .rope_theta = 1e6, .epsilon = 1e-5});
  ModelSpec& model = config.model;
  model.norm = NormKind::kLayerNorm;
  attention_biases(config);
  model.ends.head_bias = config.flag("lm_head_bias", false);
  model.hidden_dropout = config.number("hidden_dropout", 0, kDropoutRange);
  model.attention.window = config.integer_or_none("sliding_window", 0, kPositionRange);
  read_experts(config, "num_local_experts", "num_experts_per_tok");
  model.experts.router.score = RouterScore::kAll;
  config.note(
      "the router is modelled as top-k softmax instead of SparseMixer; the cost is the same");
}

constexpr Family kNewer[] = {{"smollm3", read_smollm3},
                             {"seed_oss", read_seed_oss},
                             {"helium", read_helium},
                             {"arcee", read_arcee},
                             {"cwm", read_cwm},
                             {"ministral", read_ministral},
                             {"ministral3", read_ministral3},
                             {"exaone", read_exaone},
                             {"exaone4", read_exaone4},
                             {"internlm3", read_internlm3},
                             {"mimo", read_mimo},
                             {"minicpm", read_minicpm},
                             {"granite", read_granite},
                             {"granitemoe", granite_experts},
                             {"granitemoeshared", read_granite_shared},
                             {"ernie4_5", ernie_keys},
                             {"ernie4_5_moe", read_ernie_moe},
                             {"hunyuan_v1_dense", hunyuan_keys},
                             {"hunyuan_v1_moe", read_hunyuan_moe},
                             {"dots1", read_dots1},
                             {"deepseek", read_deepseek},
                             {"bailing_moe", read_bailing},
                             {"bailing_moe_v2", read_bailing},
                             {"minimax", read_minimax},
                             {"minimax_m2", read_minimax_m2},
                             {"flex_olmo", read_flex_olmo},
                             {"phimoe", read_phimoe},
                             {"qwen2_vl", read_qwen2},
                             {"qwen2_vl_text", read_qwen2},
                             {"qwen2_5_vl", read_qwen2},
                             {"qwen2_5_vl_text", read_qwen2},
                             {"qwen3_vl_text", read_qwen3},
                             {"qwen3_vl_moe_text", read_qwen3_moe},
                             {"glm4v_text", read_glm4},
                             {"glm4v_moe_text", read_glm4_moe}};

}  // namespace

std::span<const Family> newer_families() { return kNewer; }

}  // namespace tpsim

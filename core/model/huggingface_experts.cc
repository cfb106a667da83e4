// Families with experts: Mixtral, Qwen, DeepSeek, GLM, GPT-OSS, LLaMA 4.
//
// Their files do not state a capacity: no token is dropped.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/model/huggingface_family.h"

namespace tpsim {
namespace {

using Layer = std::int64_t;

void read_mixtral(Config& config) {
  read_llama_keys(config, {.positions = 131'072, .rope_theta = 1e6, .epsilon = 1e-5});
  config.model.attention.window = config.integer_or_none("sliding_window", 0, kPositionRange);
  read_experts(config, "num_local_experts", "num_experts_per_tok");
}

void qwen_experts(Config& config) {
  read_experts(config, "num_experts", "num_experts_per_tok");
  softmax_router(config, false);
  config.in.integer("moe_intermediate_size", config.model.ffn_hidden, {});
}

void qwen_shared_expert(Config& config) {
  ExpertShape& experts = config.model.experts;
  experts.shared_ffn = config.integer("shared_expert_intermediate_size", 5632, {0, 1 << 24});
  experts.shared_gate = experts.shared_ffn > 0;
}

void read_qwen2_moe(Config& config) {
  read_llama_keys(config, {.positions = 32768});
  const std::int64_t dense_width = config.model.ffn_hidden;
  config.model.attention.qkv_bias = config.flag("qkv_bias", true);
  qwen_experts(config);
  qwen_shared_expert(config);
  spread(config);
  qwen_windows(config);
  qwen_dense_layers(config, dense_width);
}

// OLMoE: q and k are normalized over all heads at once.
void read_olmoe(Config& config) {
  read_llama_keys(config, {.epsilon = 1e-5});
  attention_biases(config);
  config.model.attention.qk_norm = QkNorm::kWidth;
  if (config.in.has("clip_qkv")) config.in.reject("clip_qkv", "clipped q, k, v are not modelled");
  read_experts(config, "num_experts", "num_experts_per_tok");
  softmax_router(config, false);
}

// Multi-head latent attention. head_dim of such files, if present, is the width of the rotary part
// only.
void read_latent(Config& config) {
  AttentionShape& attention = config.model.attention;
  attention.latent.q_rank = config.integer("q_lora_rank", 0);
  read_latent_sizes(config);
  attention.rotary.neighbours = config.flag("rope_interleave", true);
  attention_biases(config);
  const RotaryStretch& stretch = attention.rotary.stretch;
  if (stretch.kind == RotaryScaling::kYarn && stretch.mscale_all_dim > 0) {
    const double m = 0.1 * stretch.mscale_all_dim * std::log(stretch.factor) + 1;
    attention.score.scale = m * m / std::sqrt(static_cast<double>(attention.head_dim));
  }
}

void read_deepseek_v2(Config& config) {
  read_llama_keys(config, {.head_dim = 64, .positions = 2048});
  const std::int64_t dense_width = config.model.ffn_hidden;
  read_latent(config);
  deepseek_experts(config);
  RouterShape& router = config.model.experts.router;
  const std::string method = config.text("topk_method", "greedy");
  if (method == "greedy") {
    router.groups = router.groups_kept = 1;
  } else if (method != "group_limited_greedy") {
    config.in.reject(
        "topk_method",
        fmt::format("'{}' is not supported; use greedy or group_limited_greedy", method));
  }
  config.require_text("scoring_func", "softmax");
  router.score = RouterScore::kAll;
  if (router.renormalises)
    router.scaling = 1;  // transformers scales only weights that are not normalized
  deepseek_dense_layers(config, dense_width);
  read_prediction_layers(config);
}

void read_gpt_oss(Config& config) {
  read_llama_keys(config,
                  {.head_dim = 64, .positions = 131072, .rope_theta = 150000, .epsilon = 1e-5});
  ModelSpec& model = config.model;
  AttentionShape& attention = model.attention;
  attention_biases(config, "attention_bias", true);
  attention.score.sinks = true;
  config.integer("initial_context_length", 4096, kPositionRange);  // repeated in rope_scaling
  model.mlp = MlpKind::kClampedSwiglu;
  model.mlp_limit = config.number("swiglu_limit", 7, {1e-6, 1e6});
  read_experts(config, "num_local_experts", "num_experts_per_tok");
  const std::int64_t again = config.integer("experts_per_token", model.experts.per_token);
  if (again != model.experts.per_token) {
    config.in.reject("experts_per_token", fmt::format("{} contradicts num_experts_per_tok = {}",
                                                      again, model.experts.per_token));
  }
  model.experts.bias = model.experts.router.bias = true;
  spread(config);
  const std::int64_t window = config.integer("sliding_window", 128, kPositionRange);
  sliding_layers(config, window, [](Layer i) { return i % 2 == 0; });
}

void llama4_attention(Config& config) {
  const bool normalises = config.flag("use_qk_norm", true);
  const bool scales = config.flag("attn_temperature_tuning", true);
  const double temperature = config.number("attn_scale", 0.1, {0, 1e6});
  const std::int64_t floor = config.integer("floor_scale", 8192, kPositionRange);
  const std::int64_t chunk = config.integer_or_none("attention_chunk_size", 8192, kPositionRange);
  layers_that_say(config, "layer_types", "chunked_attention", "full_attention");
  const std::vector<bool> turns = rotary_layers(config);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    AttentionShape& attention = config.layers[i].attention;
    if (turns[i]) {
      attention.chunk = chunk;
      if (normalises) attention.qk_norm = QkNorm::kPlain;
      continue;
    }
    attention.position = PositionKind::kNone;
    attention.rotary = {};
    if (scales) {
      attention.score.temperature = temperature;
      attention.score.temperature_floor = floor;
    }
  }
}

void read_llama4(Config& config) {
  read_llama_keys(config, {.positions = 131'072, .rope_theta = 500000, .epsilon = 1e-5});
  ModelSpec& model = config.model;
  const std::int64_t dense_width = config.integer("intermediate_size_mlp", 16384);
  model.attention.rotary.neighbours = true;
  attention_biases(config);
  read_experts(config, "num_local_experts", "num_experts_per_tok");
  model.experts.shared_ffn = model.ffn_hidden;
  model.experts.router.score = RouterScore::kSigmoid;
  model.experts.router.scales_input = true;
  config.number("router_jitter_noise", 0, {0, 0});
  spread(config);
  llama4_attention(config);
  std::vector<std::int64_t> with_experts;
  config.in.integers("moe_layers", with_experts, {0, 1 << 20}, kOptional);
  const Layer step = config.integer("interleave_moe_layer_step", 1, {1, 1 << 20});
  for (Layer i = 0; i < static_cast<Layer>(config.layers.size()); ++i) {
    const bool listed =
        std::find(with_experts.begin(), with_experts.end(), i) != with_experts.end();
    const bool has = with_experts.empty() ? (i + 1) % step == 0 : listed;
    if (!has) make_dense(config, i, dense_width);
  }
}

// Hy3: grouped queries with one norm per head, one dense layer, sigmoid scores and shared experts.
void read_hy_v3(Config& config) {
  read_llama_keys(config, {.positions = 131'072, .rope_theta = 11'158'840, .epsilon = 1e-5});
  ModelSpec& model = config.model;
  const std::int64_t dense_width = model.ffn_hidden;
  llama_biases(config);
  model.attention.qk_norm = config.flag("qk_norm", true) ? QkNorm::kHead : QkNorm::kNone;
  read_experts(config, "num_experts", "num_experts_per_tok");
  config.in.integer("moe_intermediate_size", model.ffn_hidden, {});
  model.experts.shared_ffn =
      config.integer("num_shared_experts", 1, {0, 1 << 10}) * model.ffn_hidden;
  sigmoid_router(model.experts.router);
  model.experts.router.renormalises = config.flag("route_norm", true);
  model.experts.router.scaling = config.number("router_scaling_factor", 2.826, {1e-9, 1e9});
  deepseek_dense_layers(config, dense_width, 1);
  read_prediction_layers(config);
}

constexpr std::array kWithExperts = {Family{"mixtral", read_mixtral},
                                     Family{"qwen2_moe", read_qwen2_moe},
                                     Family{"qwen3_moe", read_qwen3_moe},
                                     Family{"olmoe", read_olmoe},
                                     Family{"deepseek_v2", read_deepseek_v2},
                                     Family{"deepseek_v3", read_deepseek_v3},
                                     Family{"kimi_k2", read_deepseek_v3},
                                     Family{"glm4_moe", read_glm4_moe},
                                     Family{"gpt_oss", read_gpt_oss},
                                     Family{"llama4_text", read_llama4},
                                     Family{"hy_v3", read_hy_v3}};

}  // namespace

void read_deepseek_v3(Config& config) {
  read_llama_keys(config, {.head_dim = 64, .positions = 4096});
  const std::int64_t dense_width = config.model.ffn_hidden;
  read_latent(config);
  deepseek_experts(config);
  RouterShape& router = config.model.experts.router;
  config.require_text("topk_method", "noaux_tc");
  config.require_text("scoring_func", "sigmoid");
  sigmoid_router(router);
  deepseek_dense_layers(config, dense_width);
  read_prediction_layers(config);
}

void read_latent_sizes(Config& config) {
  AttentionShape& attention = config.model.attention;
  LatentShape& latent = attention.latent;
  config.in.integer("kv_lora_rank", latent.kv_rank, {});
  config.in.integer("qk_nope_head_dim", latent.nope_dim, {});
  config.in.integer("qk_rope_head_dim", latent.rope_dim, {});
  config.in.integer("v_head_dim", latent.value_dim, {});
  attention.head_dim = latent.nope_dim + latent.rope_dim;
  attention.kv_heads = attention.heads;
}

void read_experts(Config& config, std::string_view count, std::string_view per_token) {
  ExpertShape& experts = config.model.experts;
  config.in.integer(count, experts.count, kExpertRange);
  config.in.integer(per_token, experts.per_token, kExpertRange);
  experts.dropless = true;
  if (experts.per_token > experts.count) {
    config.in.reject(per_token, fmt::format("{} experts per token are more than the {} experts",
                                            experts.per_token, experts.count));
  }
}

void make_dense(Config& config, Layer layer, std::int64_t width) {
  BlockShape& block = config.layers[static_cast<std::size_t>(layer)];
  block.ffn_hidden = width;
  block.experts = {};
}

void softmax_router(Config& config, bool renormalises) {
  RouterShape& router = config.model.experts.router;
  router.score = RouterScore::kAll;
  router.renormalises = config.flag("norm_topk_prob", renormalises);
}

void sigmoid_router(RouterShape& router) {
  router.score = RouterScore::kSigmoid;
  router.correction_bias = true;
}

void deepseek_experts(Config& config) {
  ExpertShape& experts = config.model.experts;
  RouterShape& router = experts.router;
  read_experts(config, "n_routed_experts", "num_experts_per_tok");
  config.in.integer("moe_intermediate_size", config.model.ffn_hidden, {});
  const std::int64_t shared = config.integer("n_shared_experts", 0, {0, 1 << 10});
  experts.shared_ffn = shared * config.model.ffn_hidden;
  router.groups = config.integer("n_group", 1, kExpertRange);
  router.groups_kept = config.integer("topk_group", router.groups, kExpertRange);
  router.renormalises = config.flag("norm_topk_prob", false);
  router.scaling = config.number("routed_scaling_factor", 1, {1e-9, 1e9});
  if (router.groups < 1 || experts.count % router.groups != 0) {
    config.in.reject("n_group", fmt::format("it does not divide the {} experts", experts.count));
  }
}

void deepseek_dense_layers(Config& config, std::int64_t dense_width, Layer usual) {
  spread(config);
  const Layer dense = config.integer("first_k_dense_replace", usual, {0, 1 << 20});
  const Layer step = config.integer("moe_layer_freq", 1, {1, 1 << 20});
  const std::vector<bool> sparse = layers_that_say(config, "mlp_layer_types", "sparse", "dense");
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    if (!sparse[i]) make_dense(config, static_cast<Layer>(i), dense_width);
  }
  if (!sparse.empty()) return;
  for (Layer i = 0; i < static_cast<Layer>(config.layers.size()); ++i) {
    if (i < dense || i % step != 0) make_dense(config, i, dense_width);
  }
}

void qwen_dense_layers(Config& config, std::int64_t dense_width) {
  std::vector<std::int64_t> dense;
  config.in.integers("mlp_only_layers", dense, {0, 1 << 20}, kOptional);
  const Layer step = config.integer("decoder_sparse_step", 1, {1, 1 << 20});
  for (Layer i = 0; i < static_cast<Layer>(config.layers.size()); ++i) {
    const bool listed = std::find(dense.begin(), dense.end(), i) != dense.end();
    if (listed || (i + 1) % step != 0) make_dense(config, i, dense_width);
  }
}

void read_qwen3_moe(Config& config) {
  read_llama_keys(config, {.positions = 32768});
  const std::int64_t dense_width = config.model.ffn_hidden;
  attention_biases(config);
  config.model.attention.qk_norm = QkNorm::kHead;
  qwen_experts(config);
  spread(config);
  qwen_windows(config);
  qwen_dense_layers(config, dense_width);
}

void read_glm4_moe(Config& config) {
  config.model.attention.rotary.fraction = 0.5;
  read_llama_keys(config, {.positions = 131072, .epsilon = 1e-5});
  const std::int64_t dense_width = config.model.ffn_hidden;
  AttentionShape& attention = config.model.attention;
  attention.qkv_bias = config.flag("attention_bias", false);
  attention.qk_norm = config.flag("use_qk_norm", false) ? QkNorm::kHead : QkNorm::kNone;
  deepseek_experts(config);
  sigmoid_router(config.model.experts.router);
  deepseek_dense_layers(config, dense_width);
  read_prediction_layers(config);
}

void read_prediction_layers(Config& config) {
  config.model.ends.prediction_layers = config.integer("num_nextn_predict_layers", 0, {0, 1 << 10});
}

std::span<const Family> expert_families() { return kWithExperts; }

}  // namespace tpsim

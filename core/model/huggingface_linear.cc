// Families with linear token mixing: Kimi Delta Attention (Kimi Linear, K3), MiniMax-01's lightning
// attention, LFM2's short convolutions.

#include <algorithm>

#include "core/model/huggingface_family.h"

namespace tpsim {
namespace {

// Kimi's linear_attn_config; layer numbers count from 1.
struct KimiLinearKeys {
  RecurrentShape recurrent;
  bool has_wide_gate = false;
  std::vector<std::int64_t> attends;
};

KimiLinearKeys read_kimi_linear_keys(Config& config) {
  KimiLinearKeys keys;
  config.in.object("linear_attn_config", [&](FieldReader& in) {
    in.allow_foreign_keys();
    RecurrentShape& shape = keys.recurrent;
    in.integer("num_heads", shape.heads, {1, 1 << 16});
    in.integer("head_dim", shape.key_dim, {1, 1 << 16});
    shape.key_heads = shape.heads;
    shape.value_dim = shape.key_dim;
    shape.convolution = 4;
    in.integer("short_conv_kernel_size", shape.convolution, {1, 1 << 10}, kOptional);
    in.integers("full_attn_layers", keys.attends, {1, 1 << 14});
    in.flag("use_full_rank_gate", keys.has_wide_gate, kOptional);
    shape.chunk = 64;  // as in flash-linear-attention's kernels
    shape.channel_decay = true;
    shape.wide_gate = keys.has_wide_gate;
  });
  return keys;
}

// Returns the low-rank projections of the decays and, without a full-rank gate, of the gate. The
// rank is the width of one head.
std::vector<PlannedOp> kimi_low_ranks(const KimiLinearKeys& keys, std::int64_t hidden) {
  const std::int64_t rank = keys.recurrent.key_dim;
  const std::int64_t width = keys.recurrent.heads * keys.recurrent.key_dim;
  std::vector<PlannedOp> ops = {planned_linear("f_a_proj", kWholeOp, rank, hidden),
                                planned_linear("f_b_proj", kRowsOp, width, rank)};
  if (keys.has_wide_gate) return ops;
  ops.push_back(planned_linear("g_a_proj", kWholeOp, rank, hidden));
  ops.push_back(planned_linear("g_b_proj", kRowsOp, width, rank));
  return ops;
}

void kimi_latent(Config& config) {
  AttentionShape& attention = config.model.attention;
  attention.latent.q_rank = config.integer_or_none("q_lora_rank", 0, {0, 1 << 24});
  read_latent_sizes(config);
  if (config.flag("mla_use_nope", false)) {
    attention.position = PositionKind::kNone;
    attention.rotary = {};
  }
}

void kimi_experts(Config& config) {
  ModelSpec& model = config.model;
  ExpertShape& experts = model.experts;
  read_experts(config, "num_experts", "num_experts_per_token");
  config.in.integer("moe_intermediate_size", model.ffn_hidden, {});
  experts.shared_ffn = config.integer("num_shared_experts", 0, {0, 1 << 10}) * model.ffn_hidden;
  experts.latent = config.integer_or_none("routed_expert_hidden_size", 0, {0, 1 << 24});
  RouterShape& router = experts.router;
  sigmoid_router(router);
  config.require_text("moe_router_activation_func", "sigmoid");
  config.require_text("topk_method", "noaux_tc");
  router.renormalises = config.flag("moe_renormalize", true);
  router.scaling = config.number("routed_scaling_factor", 1, {1e-9, 1e9});
  config.flag("use_grouped_topk", true);
  router.groups = config.integer("num_expert_group", 1, kExpertRange);
  router.groups_kept = config.integer("topk_group", 1, kExpertRange);
}

// Kimi K3's additions to blocks: an output gate of latent attention and a norm of the experts'
// latent. Sums over earlier blocks' results replace residuals.
void kimi_additions(Config& config) {
  ModelSpec& model = config.model;
  const std::int64_t hidden = model.hidden, latent = model.experts.latent;
  const bool gates = config.flag("mla_use_output_gate", false);
  const bool norms_latent = config.flag("latent_moe_use_norm", false) && latent > 0;
  const std::int64_t every = config.integer("attn_res_block_size", 0, {0, 1 << 14});
  for (const char* key : {"activation_situ_beta", "activation_situ_linear_beta"}) {
    config.pass_over(key);
  }
  if (every > 0) {
    config.note(
        "attn_res_block_size: sums over earlier blocks are priced as memory passes; stages send "
        "one residual");
  }
  for (BlockShape& block : config.layers) {
    const std::int64_t width = block.attention.heads * block.attention.latent.value_dim;
    if (gates && block.mixer == MixerKind::kAttention) {
      block.planned.push_back(planned_linear("g_proj", kRowsOp, width, hidden));
      block.planned.push_back(planned_pass("gate", kRowsOp, 3 * width, width));
    }
    if (norms_latent && block.experts.count > 0) {
      block.planned.push_back(planned_pass("latent_norm", kTokensOp, 2 * latent, latent, latent));
    }
    if (every > 0) {
      // Two sums over earlier blocks' results per layer, each with a query and a norm. On average,
      // a sum reads half of the blocks.
      const std::int64_t read = 2 + model.layers / every / 2;
      block.planned.push_back(
          planned_pass("attention_residuals", kTokensOp, 2 * read * hidden, 0, 4 * hidden));
    }
  }
}

void read_kimi_linear(Config& config) {
  ModelSpec& model = config.model;
  read_llama_keys(config,
                  {.head_dim = 64, .positions = 131072, .epsilon = 1e-5, .activation_key = ""});
  read_activation(config, "hidden_act", {{"silu", MlpKind::kSwiglu}, {"situ", MlpKind::kSitu}});
  const std::int64_t dense_width = model.ffn_hidden;
  kimi_latent(config);
  kimi_experts(config);
  const KimiLinearKeys keys = read_kimi_linear_keys(config);
  deepseek_dense_layers(config, dense_width);
  read_prediction_layers(config);
  const std::vector<PlannedOp> low_ranks = kimi_low_ranks(keys, model.hidden);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i) + 1;
    const bool attends =
        std::find(keys.attends.begin(), keys.attends.end(), number) != keys.attends.end();
    if (attends) continue;
    BlockShape& layer = config.layers[i];
    layer.mixer = MixerKind::kDeltaNet;
    layer.recurrent = keys.recurrent;
    layer.planned = low_ranks;
  }
  kimi_additions(config);
}

// Lightning attention: q, k, v and output gate projections, scores within a chunk, a state between
// chunks, and a norm over all heads.
std::vector<PlannedOp> lightning_attention(const ModelSpec& model) {
  constexpr std::int64_t kChunk = 256;
  const AttentionShape& attention = model.attention;
  const std::int64_t width = attention.heads * attention.head_dim;
  std::vector<PlannedOp> ops = {planned_linear("qkv_proj", kRowsOp, 3 * width, model.hidden),
                                planned_linear("output_gate", kRowsOp, width, model.hidden)};
  // Two GEMMs with the state, and the query-key pairs of a chunk.
  PlannedOp core;
  core.name = "lightning";
  core.kind = PlannedOpKind::kPairs;
  core.sharding = kRowsOp;
  core.width = width;
  core.heads = attention.heads;
  core.key_dim = core.value_dim = attention.head_dim;
  core.window = kChunk;
  ops.push_back(core);
  ops.push_back(planned_pass("norm", kRowsOp, 4 * width, width, width));
  ops.push_back(planned_linear("out_proj", kColumnsOp, model.hidden, width));
  return ops;
}

// LFM2: a projection to three times the width. Two thirds are gates before and after a short
// convolution of the last third.
std::vector<PlannedOp> short_convolution(const ModelSpec& model, std::int64_t taps, bool bias) {
  const std::int64_t width = model.hidden;
  const std::int64_t biases = bias ? width : 0;
  return {planned_linear("conv.in_proj", kRowsOp, 3 * width, width, 3 * biases),
          planned_pass("conv.conv", kRowsOp, 8 * width, 2 * width, taps * width + biases),
          planned_linear("conv.out_proj", kColumnsOp, width, width, biases)};
}

// Returns LFM2's feed-forward width: two thirds of the stated number times a factor, rounded up to
// block_multiple_of.
std::int64_t lfm2_width(Config& config, std::int64_t said) {
  if (!config.flag("block_auto_adjust_ff_dim", true)) return said;
  const double factor = config.number("block_ffn_dim_multiplier", 1, {1e-3, 1e3});
  const std::int64_t multiple = config.integer("block_multiple_of", 256, {1, 1 << 16});
  const std::int64_t two_thirds = 2 * said / 3;  // rounded down, as Lfm2MLP does
  const auto width = static_cast<std::int64_t>(factor * static_cast<double>(two_thirds));
  return (width + multiple - 1) / multiple * multiple;
}

void read_lfm2(Config& config) {
  ModelSpec& model = config.model;
  const bool has_experts = model.family == "lfm2_moe";
  const SizeKeys sizes = {.ffn =
                              config.in.has("block_ff_dim") ? "block_ff_dim" : "intermediate_size"};
  read_llama_keys(config, {.positions = 128000,
                           .rope_theta = 1e6,
                           .epsilon = 1e-5,
                           .tied = true,
                           .sizes = sizes,
                           .epsilon_key = "norm_eps",
                           .activation_key = ""});
  model.mlp = MlpKind::kSwiglu;
  model.tied_embedding = config.flag("tie_embedding", model.tied_embedding);
  model.attention.qk_norm = QkNorm::kHead;
  const std::int64_t taps = config.integer("conv_L_cache", 3, {1, 1 << 10});
  const bool bias = config.flag("conv_bias", false);
  for (const char* key :
       {"intermediate_size", "block_dim", "block_norm_eps", "conv_dim", "conv_dim_out",
        "block_mlp_init_scale", "block_out_init_scale", "block_use_swiglu", "block_use_xavier_init",
        "conv_use_xavier_init", "num_heads", "use_pos_enc"}) {
    config.pass_over(key);
  }
  const std::int64_t dense_width =
      has_experts ? model.ffn_hidden : lfm2_width(config, model.ffn_hidden);
  model.ffn_hidden = dense_width;
  std::int64_t dense = model.layers;
  if (has_experts) {
    read_experts(config, "num_experts", "num_experts_per_tok");
    config.in.integer("moe_intermediate_size", model.ffn_hidden, {});
    sigmoid_router(model.experts.router);
    model.experts.router.correction_bias = config.flag("use_expert_bias", true);
    model.experts.router.renormalises = config.flag("norm_topk_prob", true);
    model.experts.router.scaling = config.number("routed_scaling_factor", 1, {1e-9, 1e9});
    dense = config.integer("num_dense_layers", 0, {0, 1 << 14});
  }
  spread(config);
  std::vector<std::int64_t> attends;
  config.in.integers("full_attn_idxs", attends, {0, 1 << 14}, kOptional);
  const bool is_said = config.in.has("layer_types");
  const std::vector<bool> full = layers_that_say(config, "layer_types", "full_attention", "conv");
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    if (has_experts && layer < dense) make_dense(config, layer, dense_width);
    const bool is_full =
        is_said ? full[i] : std::find(attends.begin(), attends.end(), layer) != attends.end();
    if (is_full) continue;
    config.layers[i].mixer = MixerKind::kPlanned;
    config.layers[i].planned = short_convolution(model, taps, bias);
  }
}

constexpr Family kLinearFamilies[] = {{"kimi_linear", read_kimi_linear},
                                      {"lfm2", read_lfm2},
                                      {"lfm2_moe", read_lfm2},
                                      {"minimax_m1", read_minimax_text},
                                      {"minimax_text_01", read_minimax_text}};

}  // namespace

void read_minimax_text(Config& config) {
  ModelSpec& model = config.model;
  const std::int64_t head_dim = config.integer("head_dim", 128);
  const std::int64_t turned = config.integer("rotary_dim", head_dim);
  model.attention.rotary.fraction =
      static_cast<double>(turned) / static_cast<double>(std::max<std::int64_t>(1, head_dim));
  read_llama_keys(config,
                  {.head_dim = 128, .positions = 1'048'576, .rope_theta = 1e7, .epsilon = 1e-5});
  config.model.attention.window = config.integer_or_none("sliding_window", 0, kPositionRange);
  read_experts(config, "num_local_experts", "num_experts_per_tok");
  const std::int64_t shared = config.integer("shared_intermediate_size", 0, {0, 1 << 24});
  model.experts.shared_ffn = shared;
  config.note(
      "residual scales of the branches add no cost, since they are part of the residual op");
  spread(config);
  std::vector<std::int64_t> attends;
  config.in.integers("attn_type_list", attends, {0, 1}, kOptional);
  if (attends.empty()) {
    const std::vector<bool> full =
        layers_that_say(config, "layer_types", "full_attention", "linear_attention");
    attends.assign(full.begin(), full.end());
  }
  if (attends.size() != config.layers.size()) {
    return config.reject_length("attn_type_list", attends.size());
  }
  for (std::size_t i = 0; i < attends.size(); ++i) {
    if (attends[i] != 0) continue;
    config.layers[i].mixer = MixerKind::kPlanned;
    config.layers[i].planned = lightning_attention(model);
  }
}

std::span<const Family> linear_families() { return kLinearFamilies; }

}  // namespace tpsim

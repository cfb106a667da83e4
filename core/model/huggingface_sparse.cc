// Families with sparse attention: an indexer selects positions, or keys are compressed.
// DeepSeek-V3.2 and V4, GLM-5, MiniMax-M3.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/huggingface_family.h"

namespace tpsim {

PlannedOp planned_linear(std::string name, PlannedSharding sharding, std::int64_t width,
                         std::int64_t columns, std::int64_t parameters) {
  PlannedOp op;
  op.name = std::move(name);
  op.kind = PlannedOpKind::kLinear;
  op.sharding = sharding;
  op.width = width;
  op.columns = columns;
  op.parameters = parameters;
  return op;
}

PlannedOp planned_pass(std::string name, PlannedSharding sharding, std::int64_t moved,
                       std::int64_t width, std::int64_t parameters) {
  PlannedOp op;
  op.name = std::move(name);
  op.sharding = sharding;
  op.moved = moved;
  op.width = width;
  op.parameters = parameters;
  return op;
}

PlannedOp planned_scores(std::int64_t heads, std::int64_t dim, std::int64_t stride,
                         std::int64_t chosen) {
  PlannedOp op;
  op.name = "indexer.scores";
  op.kind = PlannedOpKind::kPairs;
  op.heads = heads;
  op.key_dim = dim;
  op.stride = stride;
  op.width = 2 * chosen;  // 32-bit indices
  return op;
}

namespace {

// Sizes of an indexer.
struct IndexerKeys {
  std::int64_t heads = 0, dim = 0, chosen = 0;
};

IndexerKeys read_indexer(Config& config) {
  IndexerKeys keys;
  config.in.integer("index_n_heads", keys.heads, {1, 1 << 16});
  config.in.integer("index_head_dim", keys.dim, {1, 1 << 16});
  config.in.integer("index_topk", keys.chosen, kPositionRange);
  return keys;
}

void read_deepseek_v32(Config& config) {
  read_deepseek_v3(config);
  add_lightning_indexers(config);
}

// GLM-5.
void read_glm_moe_dsa(Config& config) {
  read_deepseek_v32(config);
  config.integer("qk_head_dim", config.model.attention.head_dim);
}

// Sizes common to all layers of DeepSeek-V4.
struct CompressedShape {
  std::int64_t q_rank = 0, groups = 0, output_rank = 0, window = 0, streams = 1;
  IndexerKeys indexer;
};

// Mixes `streams` residual streams before and after a branch (DeepSeek's mHC).
void add_hyper_connection(std::vector<PlannedOp>& ops, const std::string& branch,
                          std::int64_t streams, std::int64_t hidden) {
  const std::int64_t coefficients = (2 + streams) * streams, width = streams * hidden;
  ops.push_back(
      planned_linear(branch + "_hc.fn", kTokensOp, coefficients, width, coefficients + 3));
  // The streams are read for the coefficients, read to collapse them, read to mix them, and
  // written.
  ops.push_back(planned_pass(branch + "_hc.mix", kTokensOp, 4 * width + 2 * hidden, width));
}

// Adds the ops that compress `stride` positions into one key of `dim` entries. Overlapping windows
// double the width of the projections.
void add_compressor(std::vector<PlannedOp>& ops, const std::string& name, std::int64_t hidden,
                    std::int64_t dim, std::int64_t stride, bool overlaps) {
  const std::int64_t width = overlaps ? 2 * dim : dim;
  ops.push_back(planned_linear(name + ".kv_proj", kWholeOp, width, hidden));
  ops.push_back(planned_linear(name + ".gate_proj", kWholeOp, width, hidden, stride * width + dim));
  ops.push_back(planned_pass(name + ".pool", kWholeOp, 4 * width));
}

// Stride of the layers with an indexer, in which compression windows overlap. Layers with another
// stride attend to all compressed keys.
constexpr std::int64_t kChoosingStride = 4;

std::vector<PlannedOp> compressed_attention(const Config& config, const CompressedShape& shape,
                                            std::int64_t stride) {
  const std::int64_t hidden = config.model.hidden;
  const AttentionShape& attention = config.model.attention;
  const std::int64_t width = attention.heads * attention.head_dim, dim = attention.head_dim;
  std::vector<PlannedOp> ops;
  add_hyper_connection(ops, "attn", shape.streams, hidden);
  add_hyper_connection(ops, "ffn", shape.streams, hidden);
  ops.push_back(planned_linear("q_a_proj", kWholeOp, shape.q_rank, hidden, shape.q_rank));
  ops.push_back(planned_linear("q_b_proj", kRowsOp, width, shape.q_rank));
  ops.push_back(planned_pass("q_b_norm", kRowsOp, 2 * width));
  ops.push_back(planned_linear("kv_proj", kWholeOp, dim, hidden, dim));
  const bool chooses = stride == kChoosingStride;
  if (stride > 0) add_compressor(ops, "compressor", hidden, dim, stride, chooses);
  if (chooses) {
    const IndexerKeys& indexer = shape.indexer;
    ops.push_back(
        planned_linear("indexer.q_b_proj", kWholeOp, indexer.heads * indexer.dim, shape.q_rank));
    add_compressor(ops, "indexer.compressor", hidden, indexer.dim, stride, true);
    ops.push_back(planned_linear("indexer.weights_proj", kWholeOp, indexer.heads, hidden));
    ops.push_back(planned_scores(indexer.heads, indexer.dim, stride, indexer.chosen));
  }
  PlannedOp core;
  core.name = "core";
  core.kind = PlannedOpKind::kPairs;
  core.sharding = kRowsOp;
  core.width = width;
  core.parameters = attention.heads;  // sinks
  core.heads = attention.heads;
  core.key_dim = core.value_dim = dim;
  core.window = shape.window;
  core.stride = stride;
  core.most = chooses ? shape.indexer.chosen : 0;
  ops.push_back(core);
  const std::int64_t latent = shape.groups * shape.output_rank;
  ops.push_back(planned_linear("o_a_proj", kRowsOp, latent, width / shape.groups));
  ops.push_back(planned_linear("o_b_proj", kColumnsOp, hidden, latent));
  return ops;
}

void deepseek_v4_experts(Config& config) {
  ModelSpec& model = config.model;
  ExpertShape& experts = model.experts;
  read_experts(config, "n_routed_experts", "num_experts_per_tok");
  config.in.integer("moe_intermediate_size", model.ffn_hidden, {});
  experts.shared_ffn = config.integer("n_shared_experts", 0, {0, 1 << 10}) * model.ffn_hidden;
  sigmoid_router(experts.router);
  experts.router.renormalises = config.flag("norm_topk_prob", true);
  experts.router.scaling = config.number("routed_scaling_factor", 1, {1e-9, 1e9});
  config.require_text("topk_method", "noaux_tc");
  const std::string scores = config.text("scoring_func", "sqrtsoftplus");
  if (scores != "sqrtsoftplus" && scores != "sigmoid") {
    config.in.reject("scoring_func", fmt::format("'{}' is not supported", scores),
                     "supported are sqrtsoftplus and sigmoid");
  }
  if (scores == "sqrtsoftplus") {
    config.note("scoring_func = sqrtsoftplus: modelled as a sigmoid of the same cost");
  }
  const std::int64_t hashed = config.integer("num_hash_layers", 0, {0, 1 << 14});
  if (hashed > 0) {
    config.note(fmt::format(
        "num_hash_layers = {}: their token-to-expert tables are not trained and not counted",
        hashed));
  }
  if (config.number("swiglu_limit", 0, {0, 1e9}) > 0) {
    config.note("swiglu_limit: clamps add no cost, since they are part of the activation");
  }
}

void read_deepseek_v4(Config& config) {
  ModelSpec& model = config.model;
  read_llama_keys(config, {.head_dim = 512, .positions = 1'048'576, .sizes = {.ffn = ""}});
  deepseek_v4_experts(config);
  CompressedShape shape;
  FieldReader& in = config.in;
  in.integer("q_lora_rank", shape.q_rank, {});
  in.integer("o_groups", shape.groups, {1, 1 << 16});
  in.integer("o_lora_rank", shape.output_rank, {});
  in.integer("sliding_window", shape.window, kPositionRange);
  shape.streams = config.integer("hc_mult", 4, {1, 64});
  shape.indexer = read_indexer(config);
  config.integer("qk_rope_head_dim", 64);  // rotation takes no time: fused with the norm
  config.number("compress_rope_theta", 160000, {1, 1e12});
  for (const char* key : {"hc_sinkhorn_iters", "hc_eps", "expert_dtype", "layer_types",
                          "compress_rates", "mlp_layer_types"}) {
    config.pass_over(key);
  }
  std::vector<std::int64_t> strides;
  in.integers("compress_ratios", strides, {0, 1 << 20});
  const std::int64_t width = model.attention.heads * model.attention.head_dim;
  if (shape.groups < 1 || width % shape.groups != 0) {
    return in.reject("o_groups", fmt::format("it does not divide the attention width {}", width));
  }
  read_prediction_layers(config);
  spread(config);
  // The list may continue with MTP layers.
  if (strides.size() < config.layers.size()) {
    return config.reject_length("compress_ratios", strides.size());
  }
  model.ends.streams = shape.streams;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].mixer = MixerKind::kPlanned;
    config.layers[i].planned = compressed_attention(config, shape, strides[i]);
  }
  OuterPart head{
      .name = "hyper_head", .layers = 0, .patches = 0, .items = 0, .layer_ops = {}, .ops = {}};
  head.ops.push_back(planned_linear("fn", kWholeOp, shape.streams, shape.streams * model.hidden,
                                    shape.streams + 1));
  model.ends.parts.push_back(head);
}

// MiniMax's indexer selects blocks of positions, in the layers marked in the list.
void minimax_indexers(Config& config) {
  std::int64_t heads = 0, dim = 0, block = 0, blocks = 0;
  std::vector<std::int64_t> sparse;
  config.in.object("sparse_attention_config", [&](FieldReader& in) {
    in.allow_foreign_keys();
    in.integer("sparse_num_index_heads", heads, {1, 1 << 16});
    in.integer("sparse_index_dim", dim, {1, 1 << 16});
    in.integer("sparse_block_size", block, kPositionRange);
    in.integer("sparse_topk_blocks", blocks, kPositionRange);
    in.integers("sparse_attention_freq", sparse, {0, 1}, kOptional);
  });
  if (!sparse.empty() && sparse.size() != config.layers.size()) {
    return config.reject_length("sparse_attention_config", sparse.size());
  }
  const std::int64_t hidden = config.model.hidden;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (!sparse.empty() && sparse[i] == 0) continue;
    BlockShape& layer = config.layers[i];
    layer.attention.chosen = block * blocks;
    // Queries and keys of the indexer have a norm over one head, with `dim` parameters.
    layer.planned = {planned_linear("index_q_proj", kWholeOp, heads * dim, hidden, dim),
                     planned_linear("index_k_proj", kWholeOp, dim, hidden, dim),
                     planned_scores(heads, dim, 1, blocks)};
  }
}

void read_minimax_m3(Config& config) {
  ModelSpec& model = config.model;
  FieldReader& in = config.in;
  const std::int64_t head_dim = config.integer("head_dim", 128);
  const std::int64_t turned = config.integer("rotary_dim", head_dim);
  model.attention.rotary.fraction =
      static_cast<double>(turned) / static_cast<double>(std::max<std::int64_t>(1, head_dim));
  read_llama_keys(
      config, {.head_dim = 128, .positions = 1'048'576, .rope_theta = 5e6, .activation_key = ""});
  const Activations known = {{"swigluoai", MlpKind::kClampedSwiglu}, {"silu", MlpKind::kSwiglu}};
  read_activation(config, "hidden_act", known);
  model.mlp_limit = config.number("swiglu_limit", 7, {1e-6, 1e6});
  config.number("swiglu_alpha", 1.702, {1.702, 1.702});
  model.norm_plus_one = config.flag("use_gemma_norm", true);
  model.attention.qk_norm = config.flag("use_qk_norm", true) ? QkNorm::kHead : QkNorm::kNone;
  config.require_text("qk_norm_type", "per_head");
  model.attention.output_gate = config.flag("attention_output_gate", false);
  read_experts(config, "num_local_experts", "num_experts_per_tok");
  model.ffn_hidden = config.integer("moe_intermediate_size", model.ffn_hidden);
  ExpertShape& experts = model.experts;
  const std::int64_t count = config.integer("n_shared_experts", 1, {0, 1 << 10});
  experts.shared_ffn =
      count * config.integer("shared_intermediate_size", model.ffn_hidden, {0, 1 << 24});
  RouterShape& router = experts.router;
  sigmoid_router(router);
  config.require_text("scoring_func", "sigmoid");
  router.correction_bias = config.flag("use_routing_bias", true);
  router.renormalises = true;
  router.scaling = config.number("routed_scaling_factor", 1, {1e-9, 1e9});
  const std::int64_t dense_width = config.integer("dense_intermediate_size", model.ffn_hidden);
  const std::int64_t modules = config.integer("num_mtp_modules", 0, {0, 1 << 10});
  model.ends.prediction_layers = config.integer("num_nextn_predict_layers", modules, {0, 1 << 10});
  const std::int64_t dense = config.integer("first_k_dense_replace", 0, {0, 1 << 14});
  spread(config);
  const std::vector<bool> has_experts = flags_of_layers(config, "moe_layer_freq");
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    const bool is_dense = has_experts.empty() ? layer < dense : !has_experts[i];
    if (is_dense) make_dense(config, layer, dense_width);
  }
  if (in.has("sparse_attention_config")) minimax_indexers(config);
}

constexpr Family kSparse[] = {
    {"deepseek_v32", read_deepseek_v32}, {"deepseek_v4", read_deepseek_v4},
    {"deepseek_ref", read_deepseek_v4},  {"glm_moe_dsa", read_glm_moe_dsa},
    {"minimax_m3", read_minimax_m3},     {"minimax_m3_vl_text", read_minimax_m3}};

}  // namespace

void add_lightning_indexers(Config& config) {
  const IndexerKeys keys = read_indexer(config);
  const std::int64_t hidden = config.model.hidden;
  const std::int64_t q_rank = config.model.attention.latent.q_rank;
  if (q_rank < 1)
    return config.in.reject("q_lora_rank",
                            "an indexer needs low-rank queries (q_lora_rank above zero)");
  const std::vector<bool> computes = layers_that_say(config, "indexer_types", "full", "shared");
  for (const char* key : {"indexer_rope_interleave", "index_topk_freq", "index_skip_topk_offset",
                          "index_share_for_mtp_iteration", "index_topk_pattern"}) {
    config.pass_over(key);
  }
  if (config.in.has("layer_types")) {
    layers_that_say(config, "layer_types", "deepseek_sparse_attention", "full_attention");
  }
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    BlockShape& layer = config.layers[i];
    layer.attention.chosen = keys.chosen;
    if (!computes.empty() && !computes[i]) continue;
    // The norm of keys is a LayerNorm, with weights and biases.
    layer.planned = {planned_linear("indexer.wq_b", kWholeOp, keys.heads * keys.dim, q_rank),
                     planned_linear("indexer.wk", kWholeOp, keys.dim, hidden, 2 * keys.dim),
                     planned_linear("indexer.weights_proj", kWholeOp, keys.heads, hidden),
                     planned_scores(keys.heads, keys.dim, 1, keys.chosen)};
  }
}

std::vector<bool> flags_of_layers(Config& config, std::string_view key) {
  if (!config.in.is_list(key)) return {};
  std::vector<std::int64_t> numbers;
  config.in.integers(key, numbers, {0, 1});
  // Lists may continue with MTP layers.
  if (numbers.size() < config.layers.size()) {
    config.reject_length(key, numbers.size());
    return {};
  }
  numbers.resize(config.layers.size());
  return {numbers.begin(), numbers.end()};
}

std::span<const Family> sparse_families() { return kSparse; }

}  // namespace tpsim

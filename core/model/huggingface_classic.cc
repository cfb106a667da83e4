// Families with LayerNorm, learned or ALiBi positions, parallel branches or plain feed-forward
// parts.

#include "core/model/huggingface_family.h"

namespace tpsim {
namespace {

constexpr double kGpt2Dropout = 0.1;  // default of GPT2Config

// Reads an integer under the key `name` or `other`. If both are missing, the error names the first.
void either(Config& config, std::string_view name, std::string_view other, std::int64_t& out,
            IntRange range = {}) {
  const bool by_other = !config.in.has(name) && config.in.has(other);
  config.in.integer(by_other ? other : name, out, range);
}

// ModelSpec has one dropout rate for the embedding and all branches: the keys must agree.
void one_dropout(Config& config, std::initializer_list<std::string_view> keys) {
  std::string_view first;
  double rate = 0;
  for (const std::string_view key : keys) {
    const double here = config.number(key, 0, kDropoutRange);
    if (!first.empty() && here != rate) {
      config.in.reject(key, "it differs from " + std::string(first) +
                                "; tpsim models one dropout rate for embedding and branches");
    }
    first = key;
    rate = here;
  }
  config.model.hidden_dropout = rate;
}

void read_bloom(Config& config) {
  FieldReader& in = config.in;
  ModelSpec& model = config.model;
  either(config, "hidden_size", "n_embed", model.hidden);
  either(config, "n_layer", "num_hidden_layers", model.layers, kLayerRange);
  either(config, "n_head", "num_attention_heads", model.attention.heads);
  in.integer("vocab_size", model.vocab, {});
  in.number("layer_norm_epsilon", model.norm_epsilon, {0, 1}, kOptional);
  in.flag("apply_residual_connection_post_layernorm", model.residual_from_after_norm, kOptional);
  model.seq = config.integer("seq_length", model.seq, kPositionRange);
  read_attention_dropout(config);
  model.hidden_dropout = config.number("hidden_dropout", 0, kDropoutRange);
  model.tied_embedding = config.flag("tie_word_embeddings", true);
  model.ffn_hidden = config.integer("n_inner", 4 * model.hidden);
  model.attention.position = PositionKind::kAlibi;
  model.embedding_norm = true;
  model.activation_ops = ActivationOps::kFunctionOps;  // BloomGelu of modeling_bloom.py
  share_width(config, "hidden_size");
}

void read_gpt2(Config& config) {
  FieldReader& in = config.in;
  ModelSpec& model = config.model;
  read_sizes(config, kGpt2Sizes);
  in.integer("n_positions", model.seq, kPositionRange);
  model.ends.positions = model.context = model.seq;
  in.number("layer_norm_epsilon", model.norm_epsilon, {0, 1}, kOptional);
  in.flag("tie_word_embeddings", model.tied_embedding, kOptional);
  model.attention_dropout = config.number("attn_pdrop", kGpt2Dropout, kDropoutRange);
  model.hidden_dropout = config.number("resid_pdrop", kGpt2Dropout, kDropoutRange);
  config.number("embd_pdrop", model.hidden_dropout, kDropoutRange);
  config.require_flag("scale_attn_weights", true, "unscaled attention scores are not modelled");
  config.require_flag("scale_attn_by_inverse_layer_idx", false,
                      "scores that are scaled by the layer number are not modelled");
  config.require_flag("add_cross_attention", false, "cross attention is not modelled");
  read_activation(config, "activation_function",
                  {{"gelu_new", MlpKind::kGelu},
                   {"gelu_pytorch_tanh", MlpKind::kGelu},
                   {"gelu", MlpKind::kGelu},
                   {"relu", MlpKind::kRelu}});
  model.ffn_hidden = config.integer("n_inner", 4 * model.hidden);
  model.attention.position = PositionKind::kLearned;
  share_width(config, "n_embd");
}

// Reads the keys that the families below share. They have LayerNorm and a feed-forward part without
// a gate.
void read_plain_keys(Config& config, std::string_view epsilon, double otherwise) {
  FieldReader& in = config.in;
  ModelSpec& model = config.model;
  in.integer("hidden_size", model.hidden, {});
  either(config, "num_hidden_layers", "n_layer", model.layers, kLayerRange);
  either(config, "num_attention_heads", "n_head", model.attention.heads);
  in.integer("vocab_size", model.vocab, {});
  read_attention_dropout(config);
  model.norm_epsilon = config.number(epsilon, otherwise, {0, 1});
  model.fused_qkv = model.linear_bias = false;
}

void set_biases(ModelSpec& model, bool attention, bool mlp) {
  model.attention.qkv_bias = model.attention.output_bias = attention;
  model.mlp_bias = mlp;
}

void read_neox(Config& config) {
  ModelSpec& model = config.model;
  read_plain_keys(config, "layer_norm_eps", 1e-5);
  config.in.integer("intermediate_size", model.ffn_hidden, {});
  share_width(config, "hidden_size");
  read_positions(config, "max_position_embeddings", 2048);
  model.attention.rotary.fraction = config.number("rotary_pct", 0.25, {0, 1});
  read_rotary(config, model.attention, config.number("rotary_emb_base", 10000, {1, 1e12}));
  model.hidden_dropout = config.number("hidden_dropout", 0, kDropoutRange);
  const bool parallel = config.flag("use_parallel_residual", true);
  model.norm_place = parallel ? NormPlace::kTwoParallel : NormPlace::kBefore;
  model.tied_embedding = config.flag("tie_word_embeddings", false);
  set_biases(model, config.flag("attention_bias", true), true);
  read_activation(config, "hidden_act",
                  {{"gelu", MlpKind::kGeluErf},
                   {"gelu_new", MlpKind::kGelu},
                   {"gelu_fast", MlpKind::kGelu},
                   {"gelu_pytorch_tanh", MlpKind::kGelu}});
}

void read_falcon(Config& config) {
  ModelSpec& model = config.model;
  AttentionShape& attention = model.attention;
  read_plain_keys(config, "layer_norm_epsilon", 1e-5);
  share_width(config, "hidden_size");
  model.ffn_hidden = config.integer("ffn_hidden_size", 4 * model.hidden);
  read_positions(config, "max_position_embeddings", 2048);
  const bool new_blocks = config.flag("new_decoder_architecture", false);
  const bool one_key = config.flag("multi_query", true);
  std::int64_t kv_heads = config.integer("n_head_kv", attention.heads);
  kv_heads = config.integer("num_kv_heads", kv_heads);
  attention.kv_heads = new_blocks ? kv_heads : one_key ? 1 : attention.heads;
  if (config.flag("alibi", false)) {
    attention.position = PositionKind::kAlibi;
  } else {
    read_rotary(config, attention, 10000);
  }
  const bool parallel = new_blocks || config.flag("parallel_attn", true);
  const std::int64_t norms = config.integer("num_ln_in_parallel_attn", new_blocks ? 2 : 1, {1, 2});
  const NormPlace side_by_side = norms == 2 ? NormPlace::kTwoParallel : NormPlace::kOneParallel;
  model.norm_place = parallel ? side_by_side : NormPlace::kBefore;
  const bool biases = config.flag("bias", false);
  set_biases(model, biases, biases);
  model.hidden_dropout = config.number("hidden_dropout", 0, kDropoutRange);
  model.tied_embedding = config.flag("tie_word_embeddings", true);
  read_activation(config, "activation",
                  {{"gelu", MlpKind::kGeluErf}, {"gelu_pytorch_tanh", MlpKind::kGelu}});
}

void read_opt(Config& config) {
  ModelSpec& model = config.model;
  read_plain_keys(config, "layer_norm_eps", 1e-5);
  config.in.integer("ffn_dim", model.ffn_hidden, {});
  share_width(config, "hidden_size");
  read_positions(config, "max_position_embeddings", 2048);
  constexpr std::int64_t kUnusedPositions = 2;  // the first rows of the table
  model.ends.positions = model.context + kUnusedPositions;
  model.attention.position = PositionKind::kLearned;
  model.hidden_dropout = config.number("dropout", 0.1, kDropoutRange);
  config.number("activation_dropout", 0, {0, 0});
  config.require_flag("do_layer_norm_before", true, "norms after the residual are not modelled");
  config.require_flag("_remove_final_layer_norm", false,
                      "models without a final norm are not modelled");
  config.require_flag("layer_norm_elementwise_affine", true,
                      "norms without weights are not modelled");
  if (config.integer("word_embed_proj_dim", model.hidden) != model.hidden) {
    config.in.reject("word_embed_proj_dim", "a projection of the embedding is not modelled");
  }
  const bool biases = config.flag("enable_bias", true);
  set_biases(model, biases, biases);
  model.tied_embedding = config.flag("tie_word_embeddings", true);
  read_activation(config, "activation_function",
                  {{"relu", MlpKind::kRelu}, {"gelu", MlpKind::kGeluErf}});
}

void read_phi(Config& config) {
  ModelSpec& model = config.model;
  read_plain_keys(config, "layer_norm_eps", 1e-5);
  config.in.integer("intermediate_size", model.ffn_hidden, {});
  model.attention.kv_heads = config.integer("num_key_value_heads", model.attention.heads);
  share_width(config, "hidden_size");
  read_positions(config, "max_position_embeddings", 2048);
  model.attention.rotary.fraction = 0.5;
  read_rotary(config, model.attention, 10000);
  one_dropout(config, {"resid_pdrop", "embd_pdrop"});
  config.require_flag("qk_layernorm", false, "LayerNorm of q and k is not modelled");
  model.norm_place = NormPlace::kOneParallel;
  set_biases(model, true, true);
  model.ends.head_bias = true;
  model.tied_embedding = config.flag("tie_word_embeddings", false);
  read_activation(config, "hidden_act",
                  {{"gelu_new", MlpKind::kGelu}, {"gelu", MlpKind::kGeluErf}});
}

void read_starcoder2(Config& config) {
  ModelSpec& model = config.model;
  read_plain_keys(config, "norm_epsilon", 1e-5);
  config.in.integer("intermediate_size", model.ffn_hidden, {});
  model.attention.kv_heads = config.integer("num_key_value_heads", 2);
  share_width(config, "hidden_size");
  read_positions(config, "max_position_embeddings", 4096);
  read_rotary(config, model.attention, 10000);
  one_dropout(config, {"residual_dropout", "embedding_dropout"});
  model.attention.window = config.integer_or_none("sliding_window", 0, kPositionRange);
  const bool biases = config.flag("use_bias", true);
  set_biases(model, biases, biases);
  model.tied_embedding = config.flag("tie_word_embeddings", true);
  const std::string mlp = config.text("mlp_type", "default");
  if (mlp != "default") config.in.reject("mlp_type", "'" + mlp + "' is not supported");
  const std::string norm = config.text("norm_type", "layer_norm");
  if (norm != "layer_norm") config.in.reject("norm_type", "'" + norm + "' is not supported");
  read_activation(config, "hidden_act",
                  {{"gelu_pytorch_tanh", MlpKind::kGelu}, {"gelu", MlpKind::kGeluErf}});
}

void read_nemotron(Config& config) {
  ModelSpec& model = config.model;
  read_plain_keys(config, "norm_eps", 1e-5);
  config.in.integer("intermediate_size", model.ffn_hidden, {});
  model.attention.kv_heads = config.integer("num_key_value_heads", model.attention.heads);
  model.attention.head_dim = config.integer("head_dim", 0);
  share_width(config, "hidden_size");
  read_positions(config, "max_position_embeddings", 4096);
  model.attention.rotary.fraction = config.number("rotary_percent", 0.5, {0, 1});
  read_rotary(config, model.attention, 10000);
  model.norm_plus_one = true;
  model.linear_bias = false;
  llama_biases(config);
  model.hidden_dropout = config.number("hidden_dropout", 0, kDropoutRange);
  model.tied_embedding = config.flag("tie_word_embeddings", false);
  read_activation(config, "hidden_act", {{"relu2", MlpKind::kReluSquared}});
}

// Cohere: one norm before both branches, LayerNorm without bias, rotation of adjacent pairs.
void read_cohere(Config& config) {
  ModelSpec& model = config.model;
  model.attention.rotary.fraction = config.number("rotary_pct", 1, {0, 1});
  read_llama_keys(config, {.positions = 8192, .tied = true});
  model.norm = NormKind::kLayerNorm;
  model.norm_bias = false;
  model.norm_epsilon = config.number("layer_norm_eps", 1e-5, {0, 1});
  model.norm_place = NormPlace::kOneParallel;
  model.attention.rotary.neighbours = true;
  attention_biases(config);
  model.attention.qk_norm = config.flag("use_qk_norm", false) ? QkNorm::kEachHead : QkNorm::kNone;
  model.ends.logit_scale = config.number("logit_scale", 0.0625, {1e-9, 1e9});
}

// Cohere 2: windows with rotary positions; every n-th layer has full attention without positions.
void read_cohere2(Config& config) {
  read_cohere(config);
  spread(config);
  const std::int64_t window = config.integer("sliding_window", 4096, kPositionRange);
  std::int64_t period = config.integer("sliding_window_pattern", 4, {1, 1 << 20});
  period = config.integer("_sliding_window_pattern", period, {1, 1 << 20});
  const std::vector<bool> slides =
      sliding_layers(config, window, [&](std::int64_t i) { return (i + 1) % period != 0; });
  for (std::size_t i = 0; i < slides.size(); ++i) {
    if (!slides[i]) config.layers[i].attention.position = PositionKind::kNone;
  }
}

constexpr Family kClassic[] = {
    {"bloom", read_bloom},           {"gpt2", read_gpt2},         {"gpt_neox", read_neox},
    {"falcon", read_falcon},         {"opt", read_opt},           {"phi", read_phi},
    {"starcoder2", read_starcoder2}, {"nemotron", read_nemotron}, {"cohere", read_cohere},
    {"cohere2", read_cohere2}};

}  // namespace

std::span<const Family> classic_families() { return kClassic; }

}  // namespace tpsim

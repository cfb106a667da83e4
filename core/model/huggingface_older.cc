// Families of 2021 to 2023 other than GPT-2 and LLaMA.
#include <algorithm>
#include <array>

#include "core/model/huggingface_family.h"

namespace tpsim {
namespace {

const Activations kGelus = {{"gelu_new", MlpKind::kGelu},
                            {"gelu_fast", MlpKind::kGelu},
                            {"gelu_pytorch_tanh", MlpKind::kGelu},
                            {"gelu", MlpKind::kGeluErf}};

// Reads the GPT-2 keys that these families share. Only the feed-forward part has biases.
void read_gpt_keys(Config& config) {
  ModelSpec& model = config.model;
  read_sizes(config, kGpt2Sizes);
  model.norm_epsilon = config.number("layer_norm_epsilon", 1e-5, {0, 1});
  model.ffn_hidden = config.integer_or_none("n_inner", 0);
  if (model.ffn_hidden == 0) model.ffn_hidden = 4 * model.hidden;
  model.fused_qkv = model.linear_bias = false;
  model.mlp_bias = true;
  share_width(config, "n_embd");
  read_activation(config, "activation_function", kGelus);
}

void read_gpt_dropouts(Config& config, double otherwise) {
  config.model.attention_dropout = config.number("attn_pdrop", otherwise, kDropoutRange);
  read_dropouts(config, "resid_pdrop", "embd_pdrop", otherwise);
}

// GPT-J and CodeGen: one norm before both branches, rotation of adjacent pairs, a bias in the head.
void read_gptj(Config& config) {
  ModelSpec& model = config.model;
  read_gpt_keys(config);
  read_gpt_dropouts(config, 0);
  read_positions(config, "n_positions", 2048);
  const std::int64_t turned = config.integer_or_none("rotary_dim", 64);
  const auto head = static_cast<double>(std::max<std::int64_t>(1, model.attention.head_dim));
  if (turned > 0)
    model.attention.rotary.fraction = std::min(1.0, static_cast<double>(turned) / head);
  read_rotary(config, model.attention, 10000);
  model.attention.rotary.neighbours = true;
  model.norm_place = NormPlace::kOneParallel;
  model.ends.head_bias = true;
  model.tied_embedding = config.flag("tie_word_embeddings", false);
}

// GPT-Neo: every second layer has a window of 256 positions; scores are not scaled.
void read_gpt_neo(Config& config) {
  ModelSpec& model = config.model;
  read_sizes(config, {.ffn = "", .layers = "num_layers", .heads = "num_heads"});
  model.ffn_hidden = config.integer_or_none("intermediate_size", 0);
  if (model.ffn_hidden == 0) model.ffn_hidden = 4 * model.hidden;
  model.norm_epsilon = config.number("layer_norm_epsilon", 1e-5, {0, 1});
  read_positions(config, "max_position_embeddings", 2048);
  model.ends.positions = model.context;
  model.attention.position = PositionKind::kLearned;
  model.attention.score.scale = 1;
  model.attention.output_bias = true;
  model.fused_qkv = model.linear_bias = false;
  model.mlp_bias = true;
  model.attention_dropout = config.number("attention_dropout", 0, kDropoutRange);
  read_dropouts(config, "resid_dropout", "embed_dropout", 0);
  model.tied_embedding = config.flag("tie_word_embeddings", true);
  share_width(config, "hidden_size");
  read_activation(config, "activation_function", kGelus);
  const std::int64_t window = config.integer("window_size", 256, kPositionRange);
  config.pass_over("attention_types");  // attention_layers has it per layer
  spread(config);
  const std::vector<bool> local = layers_that_say(config, "attention_layers", "local", "global");
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const bool here = local.empty() ? i % 2 == 1 : local[i];
    if (here) config.layers[i].attention.window = window;
  }
}

// SantaCoder and StarCoder: GPT-2 with one key/value head.
void read_gpt_bigcode(Config& config) {
  ModelSpec& model = config.model;
  read_gpt_keys(config);
  read_gpt_dropouts(config, 0.1);
  read_positions(config, "n_positions", 1024);
  model.ends.positions = model.context;
  model.attention.position = PositionKind::kLearned;
  model.attention.kv_heads = config.flag("multi_query", true) ? 1 : model.attention.heads;
  model.attention.qkv_bias = model.attention.output_bias = true;
  model.tied_embedding = config.flag("tie_word_embeddings", true);
  config.require_flag("scale_attn_weights", true, "unscaled attention scores are not modelled");
  config.require_flag("add_cross_attention", false, "cross attention is not modelled");
}

// Reads attn_config of MPT; returns whether positions are ALiBi.
bool mpt_attention(Config& config) {
  bool alibi = false;
  config.in.object(
      "attn_config",
      [&](FieldReader& in) {
        in.allow_foreign_keys();
        in.flag("alibi", alibi, kOptional);
        in.number("attn_pdrop", config.model.attention_dropout, kDropoutRange, kOptional);
        bool normalises = false, sees_prefix = false;
        in.flag("qk_ln", normalises, kOptional);
        in.flag("prefix_lm", sees_prefix, kOptional);
        std::string type = "multihead_attention";
        in.text("attn_type", type, kOptional);
        if (normalises) in.reject("qk_ln", "LayerNorm of q and k is not modelled");
        if (sees_prefix) in.reject("prefix_lm", "only causal attention is modelled");
        if (in.has("clip_qkv")) in.reject("clip_qkv", "clipped q, k, v are not modelled");
        if (type == "multiquery_attention") {
          config.model.attention.kv_heads = 1;
        } else if (type != "multihead_attention") {
          in.reject("attn_type", "'" + type + "' is not supported");
        }
      },
      kOptional);
  return alibi;
}

void read_mpt(Config& config) {
  ModelSpec& model = config.model;
  read_sizes(config, {"d_model", "", "n_layers", "n_heads"});
  model.ffn_hidden = config.integer("expansion_ratio", 4, {1, 1 << 10}) * model.hidden;
  read_positions(config, "max_seq_len", 2048);
  model.norm_epsilon = config.number("layer_norm_epsilon", 1e-5, {0, 1});
  model.fused_qkv = model.linear_bias = model.norm_bias = false;
  model.mlp = MlpKind::kGeluErf;
  model.tied_embedding = config.flag("tie_word_embeddings", true);
  config.require_flag("no_bias", true, "MPT models with biases are not modelled");
  const bool learns = config.flag("learned_pos_emb", true);
  const bool alibi = mpt_attention(config);
  model.attention.position = alibi    ? PositionKind::kAlibi
                             : learns ? PositionKind::kLearned
                                      : PositionKind::kNone;
  if (model.attention.position == PositionKind::kLearned) model.ends.positions = model.context;
  read_dropouts(config, "resid_pdrop", "emb_pdrop", 0);
  share_width(config, "d_model");
}

void read_stablelm(Config& config) {
  ModelSpec& model = config.model;
  model.attention.rotary.fraction = 0.25;
  read_llama_keys(config, {.positions = 4096, .epsilon = 1e-5, .epsilon_key = "layer_norm_eps"});
  model.norm = NormKind::kLayerNorm;
  model.attention.qkv_bias = config.flag("use_qkv_bias", false);
  if (config.flag("use_parallel_residual", false)) model.norm_place = NormPlace::kOneParallel;
  if (config.flag("qk_layernorm", false)) model.attention.qk_norm = QkNorm::kEachHead;
  model.hidden_dropout = config.number("hidden_dropout", 0, kDropoutRange);
  config.number("rope_pct", model.attention.rotary.fraction, {0, 1});
}

// The first Qwen: intermediate_size counts gate and up together.
void read_qwen(Config& config) {
  ModelSpec& model = config.model;
  const std::int64_t head_dim = config.integer("kv_channels", 128);
  model.attention.rotary.fraction = config.number("rotary_pct", 1, {0, 1});
  read_llama_keys(config, {.head_dim = head_dim,
                           .positions = config.integer("seq_length", 8192, kPositionRange),
                           .rope_theta = config.number("rotary_emb_base", 10000, {1, 1e12}),
                           .epsilon_key = "layer_norm_epsilon"});
  model.ffn_hidden /= 2;
  model.attention.qkv_bias = true;
  config.require_flag("no_bias", true, "biases other than those of q, k and v are not modelled");
  model.attention_dropout = config.number("attn_dropout_prob", 0, kDropoutRange);
  model.hidden_dropout = config.number("emb_dropout_prob", 0, kDropoutRange);
  for (const char* key : {"use_dynamic_ntk", "use_logn_attn", "use_flash_attn"}) {
    config.pass_over(key);  // extrapolation beyond the trained context; choice of kernels
  }
}

// The larger Baichuan has ALiBi and another key for the context.
void read_baichuan(Config& config) {
  const bool alibi = !config.in.has("max_position_embeddings") && config.in.has("model_max_length");
  const std::int64_t positions = config.integer("model_max_length", 4096, kPositionRange);
  read_llama_keys(config, {.positions = positions});
  if (alibi) config.model.attention.position = PositionKind::kAlibi;
}

// ChatGLM 2 and 3, and GLM-4 under its earlier type.
void read_chatglm(Config& config) {
  ModelSpec& model = config.model;
  AttentionShape& attention = model.attention;
  const bool is_padded = config.in.has("padded_vocab_size");
  read_sizes(config, {.ffn = "ffn_hidden_size",
                      .layers = "num_layers",
                      .vocab = is_padded ? "padded_vocab_size" : "vocab_size"});
  attention.head_dim = config.integer("kv_channels", 0);
  share_width(config, "hidden_size");
  const std::int64_t groups = config.integer("multi_query_group_num", 1);
  attention.kv_heads = config.flag("multi_query_attention", false) ? groups : attention.heads;
  read_positions(config, "seq_length", 2048);
  attention.rotary.fraction = 0.5;
  attention.rotary.neighbours = true;
  read_rotary(config, attention, 10000 * config.number("rope_ratio", 1, {1e-6, 1e9}));
  model.norm_epsilon = config.number("layernorm_epsilon", 1e-5, {0, 1});
  model.norm = config.flag("rmsnorm", true) ? NormKind::kRmsNorm : NormKind::kLayerNorm;
  model.mlp = MlpKind::kSwiglu;
  model.fused_qkv = model.linear_bias = false;
  const bool biases = config.flag("add_bias_linear", false);
  attention.qkv_bias = biases || config.flag("add_qkv_bias", false);
  attention.output_bias = model.mlp_bias = biases;
  model.tied_embedding = config.flag("tie_word_embeddings", false);
  model.attention_dropout = config.number("attention_dropout", 0, kDropoutRange);
  model.hidden_dropout = config.number("hidden_dropout", 0, kDropoutRange);
  config.require_flag("post_layer_norm", true, "models without a final norm are not modelled");
  config.require_flag("apply_residual_connection_post_layernorm", false,
                      "residuals taken after a norm are not modelled here");
}

constexpr std::array kOlder = {
    Family{"gptj", read_gptj},       Family{"codegen", read_gptj},
    Family{"gpt_neo", read_gpt_neo}, Family{"gpt_bigcode", read_gpt_bigcode},
    Family{"mpt", read_mpt},         Family{"stablelm", read_stablelm},
    Family{"qwen", read_qwen},       Family{"baichuan", read_baichuan},
    Family{"chatglm", read_chatglm}};

}  // namespace

std::span<const Family> older_families() { return kOlder; }

}  // namespace tpsim

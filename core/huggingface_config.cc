#include "core/huggingface_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "core/json_fields.h"
#include "core/text.h"

namespace tpsim {
namespace {

constexpr NumberRange kDropout{0, 0.99};
constexpr double kGpt2Dropout = 0.1;  // where the configuration says nothing

std::string model_name(const std::string& file) {
  const std::filesystem::path path(file);
  if (path.filename() != "config.json") return path.stem().string();
  const std::string folder = path.parent_path().filename().string();
  return folder.empty() ? "config" : folder;
}

// An integer that goes by one of two names.
void either(FieldReader& in, std::string_view name, std::string_view other, std::int64_t& out) {
  // When both are missing the error names the first.
  in.integer(in.has(name) || !in.has(other) ? name : other, out, {});
}

void require_activation(FieldReader& in, std::string_view key,
                        const std::vector<std::string_view>& supported) {
  std::string name(supported.front());
  in.text(key, name, kOptional);
  const auto found = choose("activation", name, std::span<const std::string_view>(supported));
  if (!found.ok()) in.reject(key, found.error().message, found.error().hint);
}

void even_heads(FieldReader& in, std::string_view hidden_key, ModelSpec& model) {
  AttentionShape& attention = model.attention;
  if (attention.heads < 1 || attention.head_dim > 0) return;
  if (model.hidden % attention.heads != 0) {
    in.reject(hidden_key,
              fmt::format("{} does not divide by {} heads", model.hidden, attention.heads));
  }
  attention.head_dim = model.hidden / attention.heads;
}

void read_bloom(FieldReader& in, ModelSpec& model) {
  either(in, "hidden_size", "n_embed", model.hidden);
  either(in, "n_layer", "num_hidden_layers", model.layers);
  either(in, "n_head", "num_attention_heads", model.attention.heads);
  in.integer("vocab_size", model.vocab, {});
  in.number("layer_norm_epsilon", model.norm_epsilon, {0, 1}, kOptional);
  in.flag("apply_residual_connection_post_layernorm", model.residual_from_after_norm, kOptional);
  in.integer("seq_length", model.seq, {}, kOptional);
  in.number("attention_dropout", model.attention_dropout, kDropout, kOptional);
  in.number("hidden_dropout", model.hidden_dropout, kDropout, kOptional);
  in.flag("tie_word_embeddings", model.tied_embedding, kOptional);
  model.ffn_hidden = 4 * model.hidden;
  in.integer("n_inner", model.ffn_hidden, {}, kOptional);
  model.attention.position = PositionKind::kAlibi;
  model.embedding_norm = true;
  even_heads(in, "hidden_size", model);
}

void read_gpt2(FieldReader& in, ModelSpec& model) {
  in.integer("n_embd", model.hidden, {});
  in.integer("n_layer", model.layers, {});
  in.integer("n_head", model.attention.heads, {});
  in.integer("vocab_size", model.vocab, {});
  in.integer("n_positions", model.seq, {});
  in.number("layer_norm_epsilon", model.norm_epsilon, {0, 1}, kOptional);
  in.flag("tie_word_embeddings", model.tied_embedding, kOptional);
  model.attention_dropout = model.hidden_dropout = kGpt2Dropout;
  in.number("attn_pdrop", model.attention_dropout, kDropout, kOptional);
  in.number("resid_pdrop", model.hidden_dropout, kDropout, kOptional);
  require_activation(in, "activation_function", {"gelu_new", "gelu", "gelu_pytorch_tanh"});
  model.ffn_hidden = 4 * model.hidden;
  in.integer("n_inner", model.ffn_hidden, {}, kOptional);
  model.attention.position = PositionKind::kLearned;
  even_heads(in, "n_embd", model);
}

void read_llama(FieldReader& in, ModelSpec& model) {
  AttentionShape& attention = model.attention;
  in.integer("hidden_size", model.hidden, {});
  in.integer("intermediate_size", model.ffn_hidden, {});
  in.integer("num_hidden_layers", model.layers, {});
  in.integer("num_attention_heads", attention.heads, {});
  in.integer("vocab_size", model.vocab, {});
  attention.kv_heads = attention.heads;
  in.integer("num_key_value_heads", attention.kv_heads, {}, kOptional);
  in.integer("head_dim", attention.head_dim, {}, kOptional);
  in.number("attention_dropout", model.attention_dropout, kDropout, kOptional);
  in.number("rope_theta", attention.rope_theta, {1, 1e12}, kOptional);
  in.number("rms_norm_eps", model.norm_epsilon, {0, 1}, kOptional);
  require_activation(in, "hidden_act", {"silu"});
  constexpr std::int64_t kLongestByDefault = 8192;
  model.seq = 4096;
  in.integer("max_position_embeddings", model.seq, {}, kOptional);
  // Long-context models state 131,072 positions and more; few steps of training use them.
  model.seq = std::min(model.seq, kLongestByDefault);
  model.tied_embedding = false;
  in.flag("tie_word_embeddings", model.tied_embedding, kOptional);
  model.linear_bias = false;
  in.flag("attention_bias", model.linear_bias, kOptional);
  bool mlp_bias = false;
  in.flag("mlp_bias", mlp_bias, kOptional);
  if (mlp_bias != model.linear_bias) {
    in.reject(mlp_bias ? "mlp_bias" : "attention_bias",
              "biases on the attention or the MLP alone are not modelled");
  }
  attention.position = PositionKind::kRotary;
  model.norm = NormKind::kRmsNorm;
  model.mlp = MlpKind::kSwiglu;
  model.fused_qkv = false;
  even_heads(in, "hidden_size", model);
}

// A llama whose feed-forward parts are experts. These files say nothing of a capacity: a token is
// never dropped. The default factor is what such routing costs when it is balanced.
void read_mixtral(FieldReader& in, ModelSpec& model) {
  read_llama(in, model);
  in.integer("num_local_experts", model.experts.count, {1, 1 << 16});
  in.integer("num_experts_per_tok", model.experts.per_token, {1, 1 << 16});
}

}  // namespace

Result<ModelSpec> model_from_huggingface(const JsonValue& root, const std::string& file) {
  constexpr std::array<std::string_view, 4> kTypes = {"bloom", "gpt2", "llama", "mixtral"};
  constexpr std::array kReaders = {read_bloom, read_gpt2, read_llama, read_mixtral};
  FieldReader in(root, file);
  in.allow_foreign_keys();
  std::string type;
  in.text("model_type", type);
  TPSIM_TRY_STATUS(in.finish());
  const auto index = choose("model_type", type, std::span<const std::string_view>(kTypes));
  if (!index.ok()) {
    in.reject("model_type", fmt::format("'{}' is not supported", type),
              "supported are bloom, gpt2, llama and mixtral; write a tpsim model file for others");
    return in.finish().error();
  }
  ModelSpec model;
  model.name = model_name(file);
  model.source = fmt::format("Hugging Face {} configuration {}", type, file);
  in.number("initializer_range", model.initializer_range, {0, 10}, kOptional);
  kReaders[*index](in, model);
  // Every head has its own keys and values where a file knows no sharing.
  if (model.attention.kv_heads == 0) model.attention.kv_heads = model.attention.heads;
  TPSIM_TRY_STATUS(in.finish());
  TPSIM_TRY_STATUS(at_file(validate(model), file));
  return model;
}

}  // namespace tpsim

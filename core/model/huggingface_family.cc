#include "core/model/huggingface_family.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"

namespace tpsim {
namespace {

using Scaling = RotaryScaling;

Scaling scaling_of(FieldReader& in, const std::string& name) {
  if (name == "default" || name == "dynamic" || name == "mrope") return Scaling::kNone;
  if (name == "linear") return Scaling::kLinear;
  if (name == "llama3") return Scaling::kLlama3;
  if (name == "yarn" || name == "deepseek_yarn") return Scaling::kYarn;
  if (name == "longrope" || name == "su") return Scaling::kLongRope;
  in.reject(in.has("rope_type") ? "rope_type" : "type",
            fmt::format("rotary scaling '{}' is not supported", name),
            "supported are default, mrope, linear, dynamic, llama3, yarn and longrope");
  return Scaling::kNone;
}

// Reads "rope_scaling", or "rope_parameters", which also has the base. Newer files have one object
// per layer type. This function reads "full_attention"; readers of families with windows read the
// other objects.
void read_stretch(FieldReader& in, AttentionShape& attention, std::int64_t original) {
  in.allow_foreign_keys();
  if (in.has("full_attention")) {
    return in.object("full_attention",
                     [&](FieldReader& inner) { read_stretch(inner, attention, original); });
  }
  RotaryStretch& stretch = attention.rotary.stretch;
  in.number("rope_theta", attention.rope_theta, {1, 1e12}, kOptional);
  in.number("partial_rotary_factor", attention.rotary.fraction, {0, 1}, kOptional);
  std::string name = "default";
  in.text(in.has("rope_type") ? "rope_type" : "type", name, kOptional);
  stretch.kind = scaling_of(in, name);
  if (stretch.kind == Scaling::kNone) return;
  if (stretch.kind != Scaling::kLongRope) in.number("factor", stretch.factor, {1, 1e6});
  in.number("factor", stretch.factor, {1, 1e6}, kOptional);
  stretch.original_positions = original;
  in.integer("original_max_position_embeddings", stretch.original_positions, kPositionRange,
             kOptional);
  in.number("low_freq_factor", stretch.low_freq_factor, {1e-6, 1e6}, kOptional);
  in.number("high_freq_factor", stretch.high_freq_factor, {1e-6, 1e6}, kOptional);
  in.number("beta_fast", stretch.beta_fast, {1e-6, 1e6}, kOptional);
  in.number("beta_slow", stretch.beta_slow, {1e-6, 1e6}, kOptional);
  in.flag("truncate", stretch.truncate, kOptional);
  if (in.has("llama_4_scaling_beta")) {
    in.number("llama_4_scaling_beta", attention.score.temperature, {0, 1e6});
    attention.score.temperature_floor = stretch.original_positions;
  }
  in.number("mscale", stretch.mscale, {0, 1e6}, kOptional);
  in.number("mscale_all_dim", stretch.mscale_all_dim, {0, 1e6}, kOptional);
  in.number("attention_factor", stretch.attention_factor, {0, 1e6}, kOptional);
  if (stretch.kind == Scaling::kLlama3 && stretch.high_freq_factor < stretch.low_freq_factor) {
    in.reject("high_freq_factor", "it must not be below low_freq_factor");
  }
  if (stretch.kind == Scaling::kLongRope) {
    in.numbers("short_factor", stretch.short_factors, {1e-6, 1e9});
    in.numbers("long_factor", stretch.long_factors, {1e-6, 1e9});
  }
}

}  // namespace

std::int64_t Config::integer(std::string_view key, std::int64_t otherwise, IntRange range) {
  in.integer(key, otherwise, range, kOptional);
  return otherwise;
}

double Config::number(std::string_view key, double otherwise, NumberRange range) {
  in.number(key, otherwise, range, kOptional);
  return otherwise;
}

std::int64_t Config::integer_or_none(std::string_view key, std::int64_t otherwise, IntRange range) {
  return in.is_null(key) ? 0 : integer(key, otherwise, range);
}

double Config::number_or_none(std::string_view key, double otherwise, NumberRange range) {
  return in.is_null(key) ? 0 : number(key, otherwise, range);
}

bool Config::flag(std::string_view key, bool otherwise) {
  in.flag(key, otherwise, kOptional);
  return otherwise;
}

std::string Config::text(std::string_view key, std::string otherwise) {
  in.text(key, otherwise, kOptional);
  return otherwise;
}

void Config::require_flag(std::string_view key, bool only, std::string_view why) {
  if (flag(key, only) != only) in.reject(key, std::string(why));
}

void Config::require_text(std::string_view key, std::string_view only) {
  const std::string said = text(key, std::string(only));
  if (said != only) in.reject(key, fmt::format("'{}' is not supported for this model type", said));
}

void Config::reject_length(std::string_view key, std::size_t length) {
  in.reject(key,
            fmt::format("it has {} entries, but num_hidden_layers is {}", length, model.layers));
}

void share_width(Config& config, std::string_view hidden_key) {
  AttentionShape& attention = config.model.attention;
  if (attention.heads < 1 || attention.head_dim > 0) return;
  if (config.model.hidden % attention.heads != 0) {
    config.in.reject(hidden_key, fmt::format("{} is not divisible by {} heads", config.model.hidden,
                                             attention.heads));
  }
  attention.head_dim = config.model.hidden / attention.heads;
}

void read_sizes(Config& config, const SizeKeys& keys) {
  ModelSpec& model = config.model;
  config.in.integer(keys.hidden, model.hidden, {});
  if (!keys.ffn.empty()) config.in.integer(keys.ffn, model.ffn_hidden, {});
  if (!keys.layers.empty()) config.in.integer(keys.layers, model.layers, kLayerRange);
  config.in.integer(keys.heads, model.attention.heads, {});
  if (!keys.vocab.empty()) config.in.integer(keys.vocab, model.vocab, {});
}

void read_activation(Config& config, std::string_view key, const Activations& known) {
  std::string name(known.front().first);
  config.in.text(key, name, kOptional);
  const auto found = choose("activation", name, texts_of(known, &Activations::value_type::first));
  if (!found.ok()) return config.in.reject(key, found.error().message, found.error().hint);
  config.model.mlp = known[*found].second;
  const bool saves_ops = name == "gelu_new" || name == "gelu_fast";  // transformers/activations.py
  if (saves_ops) config.model.activation_ops = ActivationOps::kSavedOps;
}

void read_positions(Config& config, std::string_view key, std::int64_t otherwise) {
  config.model.context = config.integer(key, otherwise, kPositionRange);
  config.model.seq = config.model.context;
}

void read_attention_dropout(Config& config) {
  config.model.attention_dropout = config.number("attention_dropout", 0, kDropoutRange);
}

void read_dropouts(Config& config, std::string_view branches, std::string_view embedding,
                   double otherwise) {
  double& rate = config.model.hidden_dropout;
  rate = config.number(branches, otherwise, kDropoutRange);
  if (config.number(embedding, rate, kDropoutRange) != rate) {
    config.in.reject(embedding,
                     fmt::format("it differs from {}; tpsim models one rate for both", branches));
  }
}

void attention_biases(Config& config, std::string_view key, bool otherwise) {
  AttentionShape& attention = config.model.attention;
  attention.qkv_bias = attention.output_bias = config.flag(key, otherwise);
}

void llama_biases(Config& config) {
  attention_biases(config);
  config.model.mlp_bias = config.flag("mlp_bias", false);
}

void read_rotary(Config& config, AttentionShape& attention, double theta) {
  FieldReader& in = config.in;
  attention.position = PositionKind::kRotary;
  attention.rope_theta = config.number("rope_theta", theta, {1, 1e12});
  attention.rotary.fraction =
      config.number("partial_rotary_factor", attention.rotary.fraction, {0, 1});
  const std::int64_t original =
      config.integer("original_max_position_embeddings", config.model.context, kPositionRange);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    in.object(
        key, [&](FieldReader& inner) { read_stretch(inner, attention, original); }, kOptional);
  }
  const RotaryStretch& stretch = attention.rotary.stretch;
  const auto turned = static_cast<std::size_t>(static_cast<double>(attention.head_dim) *
                                               attention.rotary.fraction / 2);
  for (const auto& [name, factors] : {std::pair{"short_factor", &stretch.short_factors},
                                      {"long_factor", &stretch.long_factors}}) {
    if (stretch.kind == Scaling::kLongRope && factors->size() != turned) {
      in.reject("rope_scaling", fmt::format("{} has {} factors, but a head has {} rotary pairs",
                                            name, factors->size(), turned));
    }
  }
}

void read_llama_keys(Config& config, const Defaults& defaults) {
  ModelSpec& model = config.model;
  AttentionShape& attention = model.attention;
  read_sizes(config, defaults.sizes);
  if (defaults.vocab > 0) model.vocab = config.integer("vocab_size", defaults.vocab);
  attention.kv_heads = config.integer("num_key_value_heads", attention.heads);
  attention.head_dim = config.integer("head_dim", defaults.head_dim);
  share_width(config, "hidden_size");
  read_attention_dropout(config);
  read_positions(config, "max_position_embeddings", defaults.positions);
  read_rotary(config, attention, defaults.rope_theta);
  model.norm_epsilon = config.number(defaults.epsilon_key, defaults.epsilon, {0, 1});
  model.tied_embedding = config.flag("tie_word_embeddings", defaults.tied);
  model.linear_bias = false;
  model.norm = NormKind::kRmsNorm;
  model.fused_qkv = false;
  if (defaults.activation_key.empty()) return;
  const bool is_plain = defaults.mlp == MlpKind::kReluSquared;
  read_activation(config, defaults.activation_key, {{is_plain ? "relu2" : "silu", defaults.mlp}});
}

void spread(Config& config) {
  // The number of layers may be out of range if the file has an error.
  const bool is_sane =
      config.model.layers >= kLayerRange.least && config.model.layers <= kLayerRange.most;
  config.layers.assign(is_sane ? static_cast<std::size_t>(config.model.layers) : 0,
                       block_of_kind(config.model, 0));
}

std::vector<bool> layers_that_say(Config& config, std::string_view key, std::string_view word,
                                  std::string_view other) {
  if (!config.in.has(key)) return {};
  std::vector<std::string> words;
  config.in.texts(key, words);
  if (words.size() != config.layers.size()) {
    config.reject_length(key, words.size());
  }
  std::vector<bool> says(config.layers.size(), false);
  for (std::size_t i = 0; i < std::min(words.size(), says.size()); ++i) {
    says[i] = words[i] == word;
    if (!says[i] && words[i] != other) {
      config.in.reject(key, fmt::format("'{}' is not supported", words[i]),
                       fmt::format("a layer is '{}' or '{}'", word, other));
    }
  }
  return says;
}

std::vector<bool> sliding_layers(Config& config, std::int64_t window,
                                 const std::function<bool(std::int64_t)>& slides) {
  std::vector<bool> all =
      layers_that_say(config, "layer_types", "sliding_attention", "full_attention");
  const bool is_said = !all.empty();
  all.resize(config.layers.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_said) all[i] = slides(static_cast<std::int64_t>(i));
    if (all[i]) config.layers[i].attention.window = window;
  }
  return all;
}

std::vector<bool> rotary_layers(Config& config) {
  std::vector<std::int64_t> turns;
  config.in.integers("no_rope_layers", turns, {0, 1}, kOptional);
  const std::int64_t period = config.integer("no_rope_layer_interval", 4, {1, 1 << 20});
  if (turns.empty()) {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(config.layers.size()); ++i) {
      turns.push_back((i + 1) % period != 0 ? 1 : 0);
    }
  }
  if (turns.size() != config.layers.size()) {
    config.reject_length("no_rope_layers", turns.size());
    turns.resize(config.layers.size());
  }
  return {turns.begin(), turns.end()};
}

void qwen_windows(Config& config) {
  const std::int64_t window = config.integer("sliding_window", 4096, kPositionRange);
  const std::int64_t first = config.integer("max_window_layers", 28, {0, 1 << 20});
  const bool uses = config.flag("use_sliding_window", false);
  sliding_layers(config, window, [&](std::int64_t i) { return uses && i >= first; });
}

}  // namespace tpsim

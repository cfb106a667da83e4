// Families of dense blocks with rotary positions and RMSNorm: LLaMA and its successors.
#include <cmath>

#include "core/model/huggingface_family.h"

namespace tpsim {
namespace {

using Layer = std::int64_t;

// Reads a sliding window that applies to all layers.
void window_everywhere(Config& config, std::int64_t otherwise) {
  config.model.attention.window =
      config.integer_or_none("sliding_window", otherwise, kPositionRange);
}

void read_llama(Config& config) {
  read_llama_keys(config, {.positions = 2048});
  llama_biases(config);
}

void read_mistral(Config& config) {
  read_llama_keys(config, {.positions = 131'072});
  window_everywhere(config, 4096);
}

const Activations kGeluTanh = {{"gelu_pytorch_tanh", MlpKind::kGeglu}};

// Reads the keys common to Gemma 1 to 3. Callers set the defaults of positions and rotary base.
void read_gemma_keys(Config& config, Defaults defaults) {
  defaults.head_dim = 256;
  defaults.tied = true;
  defaults.sizes.vocab = "";
  defaults.vocab = 262208;
  defaults.activation_key = "";
  read_llama_keys(config, defaults);
  attention_biases(config);
  config.model.norm_plus_one = true;
  config.model.ends.embedding_scale = std::sqrt(static_cast<double>(config.model.hidden));
}

// Files of Gemma 1 state "gelu" but the model uses the tanh approximation.
void read_gemma(Config& config) {
  read_gemma_keys(config, {.positions = 8192});
  const Activations known = {{"gelu_pytorch_tanh", MlpKind::kGeglu}, {"gelu", MlpKind::kGeglu}};
  read_activation(config, "hidden_act", known);
  read_activation(config, "hidden_activation", known);
}

// Reads the keys common to Gemma 2 and 3. `scores` and `logits` are the default caps.
void read_gemma_blocks(Config& config, double scores, double logits) {
  ModelSpec& model = config.model;
  read_activation(config, "hidden_activation", kGeluTanh);
  if (config.in.has("hidden_act")) read_activation(config, "hidden_act", kGeluTanh);
  model.norm_place = NormPlace::kAround;
  ScoreShape& score = model.attention.score;
  model.ends.logit_cap = config.number_or_none("final_logit_softcapping", logits, {1e-6, 1e6});
  score.cap = config.number_or_none("attn_logit_softcapping", scores, {1e-6, 1e6});
  score.scale = 1 / std::sqrt(config.number("query_pre_attn_scalar", 256, {1e-6, 1e6}));
}

void read_gemma2(Config& config) {
  read_gemma_keys(config, {.positions = 8192});
  read_gemma_blocks(config, 50, 30);
  spread(config);
  const std::int64_t window = config.integer("sliding_window", 4096, kPositionRange);
  config.integer("sliding_window_size", window, kPositionRange);  // a second name
  sliding_layers(config, window, [](Layer i) { return i % 2 == 0; });
}

void read_gemma3(Config& config) {
  read_gemma_keys(config, {.positions = 131072, .rope_theta = 1e6});
  read_gemma_blocks(config, 0, 0);
  AttentionShape& attention = config.model.attention;
  attention.qk_norm = QkNorm::kHead;
  config.require_flag("use_bidirectional_attention", false, "only causal attention is modelled");
  spread(config);
  const std::int64_t window = config.integer("sliding_window", 4096, kPositionRange);
  const double theta = config.number("rope_local_base_freq", 1e4, {1, 1e12});
  Layer period = config.integer("sliding_window_pattern", 6, {1, 1 << 20});
  period = config.integer("_sliding_window_pattern", period, {1, 1 << 20});
  const std::vector<bool> slides =
      sliding_layers(config, window, [&](Layer i) { return (i + 1) % period != 0; });
  for (std::size_t i = 0; i < slides.size(); ++i) {
    if (!slides[i]) continue;
    AttentionShape& local = config.layers[i].attention;
    local.rope_theta = theta;
    local.rotary.stretch = {};
  }
}

void read_phi3(Config& config) {
  read_llama_keys(config, {.epsilon = 1e-5});
  ModelSpec& model = config.model;
  const double residual = config.number("resid_pdrop", 0, kDropoutRange);
  const double embedding = config.number("embd_pdrop", 0, kDropoutRange);
  if (residual != embedding) {
    config.in.reject("resid_pdrop", "it differs from embd_pdrop; tpsim models one rate for both");
  }
  model.hidden_dropout = residual;
  attention_biases(config);
  window_everywhere(config, 0);
}

void read_internlm2(Config& config) {
  read_llama_keys(config, {.positions = 2048});
  attention_biases(config, "bias");
}

// GLM-4: norms around both branches, half of every head is rotated in adjacent pairs.
// attention_bias adds biases to q, k and v only.
void read_glm_keys(Config& config) {
  AttentionShape& attention = config.model.attention;
  attention.rotary.fraction = 0.5;
  read_llama_keys(config, {.head_dim = 128, .positions = 131072, .epsilon = 1.5625e-7});
  attention.rotary.neighbours = true;
  attention.qkv_bias = config.flag("attention_bias", true);
}

void read_glm(Config& config) { read_glm_keys(config); }

// OLMo 3: three of four layers have a window.
void read_olmo3(Config& config) {
  read_olmo2(config);
  spread(config);
  const std::int64_t window = config.integer("sliding_window", 4096, kPositionRange);
  sliding_layers(config, window, [](Layer i) { return (i + 1) % 4 != 0; });
}

constexpr Family kDense[] = {{"llama", read_llama},         {"mistral", read_mistral},
                             {"qwen2", read_qwen2},         {"qwen3", read_qwen3},
                             {"gemma", read_gemma},         {"gemma2", read_gemma2},
                             {"gemma3_text", read_gemma3},  {"phi3", read_phi3},
                             {"internlm2", read_internlm2}, {"glm", read_glm},
                             {"glm4", read_glm4},           {"olmo2", read_olmo2},
                             {"olmo3", read_olmo3}};

}  // namespace

void read_qwen2(Config& config) {
  read_llama_keys(config, {.positions = 32768});
  config.model.attention.qkv_bias = true;
  config.require_flag("use_mrope", false, "multi-dimensional rotary positions are not modelled");
  spread(config);
  qwen_windows(config);
}

void read_qwen3(Config& config) {
  read_llama_keys(config, {.head_dim = 128, .positions = 32768});
  attention_biases(config);
  config.model.attention.qk_norm = QkNorm::kHead;
  spread(config);
  qwen_windows(config);
}

void read_glm4(Config& config) {
  read_glm_keys(config);
  config.model.norm_place = NormPlace::kAround;
}

void read_olmo2(Config& config) {
  read_llama_keys(config, {.positions = 2048, .epsilon = 1e-5});
  attention_biases(config);
  config.model.attention.qk_norm = QkNorm::kWidth;
  config.model.norm_place = NormPlace::kAfter;
}

std::span<const Family> dense_families() { return kDense; }

}  // namespace tpsim

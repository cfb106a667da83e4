// Reads the models of OLMo-core: OLMo 2 and 3, their hybrids with gated delta nets, OLMoE and
// Llama's shape.
//
// Sources: olmo_core/nn/transformer/config.py, nn/attention, nn/moe and nn/rope.py of fa6c501.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "frameworks/launch/trained_weights.h"
#include "frameworks/olmo/olmo_values.h"

namespace tpsim {
namespace {

class OlmoBlocks {
 public:
  OlmoBlocks(OlmoValues& values, OlmoModel& read) : values_(values), read_(read) {}

  // Sets the blocks of all layers, and what all layers have in common.
  void take(std::int64_t layers) {
    pattern_ = values_.list("model.block_pattern");
    std::vector<BlockShape> blocks;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const std::string at = place_of_layer(layer);
      take_common(at, layer == 0);
      blocks.push_back(block_at(at, layer, layers));
    }
    set_blocks(read_.model, blocks);
  }

 private:
  static constexpr std::int64_t kNoWindow = 0;

  std::string place_of_layer(std::int64_t layer) const {
    std::string own = fmt::format("model.block_overrides.{}.", layer);
    if (values_.has_prefix(own)) return own;
    if (pattern_.empty()) return "model.block.";
    const auto period = static_cast<std::int64_t>(pattern_.size());
    return fmt::format("model.block.{}.", pattern_[static_cast<std::size_t>(layer % period)]);
  }

  void set_part(StackPart part, std::string_view word) {
    read_.parts[part] = parse_value(row_of(part), word).value();
  }

  // Reads norms and their places, activation and biases, which tpsim's blocks have in common. The
  // first block defines them.
  void take_common(const std::string& at, bool is_first) {
    ModelSpec own = read_.model;
    own.norm_place = norm_place_of(at + "name");
    take_norm(at + "layer_norm.", own);
    own.mlp = activation_of(at);
    own.mlp_bias =
        values_.has_section(at + "feed_forward") && values_.flag(at + "feed_forward.bias", true);
    for (const char* key : {"attention_residual_alpha", "feed_forward_residual_alpha"}) {
      if (values_.real(at + key, 1) != 1) {
        values_.refuse(at + key, "scaled residual branches are not modelled");
      }
    }
    values_.refuse_if_set(at + "dropout", "dropout of OLMo-core is not modelled");
    if (is_first) {
      read_.model = std::move(own);
    } else if (own.norm_place != read_.model.norm_place || own.norm != read_.model.norm) {
      values_.refuse(at + "name", "layers with norms in different places are not modelled");
    }
  }

  NormPlace norm_place_of(const std::string& key) {
    const std::string name = values_.text(key);
    if (matches_any(name, "reordered_norm moe_reordered_norm")) return NormPlace::kAfter;
    if (name == "peri_norm") return NormPlace::kAround;
    if (name == "default_scaled") {
      note("LayerNorm Scaling: the constant factor after each norm is predicted as free");
    } else if (!matches_any(name, "default moe") && !name.empty()) {
      values_.refuse(key,
                     "tpsim models the blocks default, reordered_norm, peri_norm, moe and "
                     "moe_reordered_norm of OLMo-core");
    }
    return NormPlace::kBefore;
  }

  void take_norm(const std::string& at, ModelSpec& model) {
    const std::string name = values_.text(at + "name");
    model.norm = name == "default" ? NormKind::kLayerNorm : NormKind::kRmsNorm;
    if (matches_any(name, "fused_rms cute_rms")) set_part(StackPart::kNormKernel, "fused");
    if (name == "l2_norm") values_.refuse(at + "name", "norms without weights are not modelled");
    model.norm_epsilon = values_.real(at + "eps", 1e-5);
    model.norm_bias = values_.flag(at + "bias", true) && model.norm == NormKind::kLayerNorm;
    for (const char* key : {"elementwise_affine", "full_precision", "dtype"}) {
      values_.text(at + key);
    }
  }

  MlpKind activation_of(const std::string& at) {
    const std::string key = at + "feed_forward.activation";
    const std::string name = values_.text(key);
    if (name == "gelu_tanh") return MlpKind::kGeglu;
    if (!name.empty() && name != "silu") values_.refuse(key, "tpsim models silu and gelu_tanh");
    const std::string kind = at + "feed_forward.name";
    if (values_.text(kind) == "normalized") values_.refuse(kind, "nGPT is not modelled");
    return MlpKind::kSwiglu;
  }

  BlockShape block_at(const std::string& at, std::int64_t layer, std::int64_t layers) {
    BlockShape block;
    const bool is_old = values_.has_section(at + "attention");  // before 2026
    const std::string mixer = at + (is_old ? "attention" : "sequence_mixer");
    const std::string made = values_.class_of(mixer);
    if (made.ends_with(".GatedDeltaNetConfig")) {
      take_delta_net(mixer + ".", block);
    } else if (made.ends_with(".AttentionConfig")) {
      take_attention(mixer + ".", layer, layers, block.attention);
    } else {
      values_.refuse(fmt::format("{}.{}", mixer, kMadeBy),
                     "tpsim models attention and gated delta nets of OLMo-core");
    }
    block.ffn_hidden = values_.number(at + "feed_forward.hidden_size");
    if (!values_.has_section(at + "feed_forward_moe")) return block;
    if (block.ffn_hidden > 0) {
      values_.refuse(at + "name", "a dense MLP in parallel with experts is not modelled");
    }
    take_experts(at + "feed_forward_moe.", block);
    return block;
  }

  void take_attention(const std::string& at, std::int64_t layer, std::int64_t layers,
                      AttentionShape& attention) {
    attention.heads = values_.number(at + "n_heads", 16);
    attention.kv_heads = values_.number(at + "n_kv_heads", attention.heads);
    const std::int64_t heads = std::max<std::int64_t>(1, attention.heads);
    attention.head_dim = values_.number(at + "head_dim", read_.model.hidden / heads);
    attention.window = window_of(at + "sliding_window.", layer, layers);
    attention.qkv_bias = attention.output_bias = values_.flag(at + "bias", true);
    take_rotary(at + "rope.", attention);
    const bool per_head = values_.flag(at + "use_head_qk_norm");
    if (values_.has_section(at + "qk_norm")) {
      attention.qk_norm = per_head ? QkNorm::kHead : QkNorm::kWidth;
    }
    if (values_.has_section(at + "gate")) {
      attention.output_gate = values_.text(at + "gate.granularity") == "elementwise";
      if (!attention.output_gate) {
        values_.refuse(at + "gate.granularity", "a gate with one value per head is not modelled");
      }
    }
    if (values_.text(at + "name") == "normalized") {
      values_.refuse(at + "name", "attention of nGPT is not modelled");
    }
    values_.refuse_if_set(at + "dropout", "dropout of OLMo-core is not modelled");
    if (values_.real(at + "clip_qkv") > 0) note("clip_qkv: its pass over q, k and v is left out");
    take_kernel(at);
  }

  void take_kernel(const std::string& at) {
    const std::string backend = values_.text(at + "backend");
    values_.flag(at + "use_flash");
    if (backend == "flash_3") set_part(StackPart::kAttentionKernel, "flash3");
    if (backend == "te") set_part(StackPart::kAttentionKernel, "cudnn");
    if (backend == "flash_4") set_part(StackPart::kAttentionKernel, "best");
  }

  // Returns the window of the layer; 0: full attention. The pattern starts at the second layer if
  // the first one always has full attention.
  std::int64_t window_of(const std::string& at, std::int64_t layer, std::int64_t layers) {
    const std::vector<std::string> pattern = values_.list(at + "pattern");
    const bool first = values_.flag(at + "force_full_attention_on_first_layer", true);
    const bool last = values_.flag(at + "force_full_attention_on_last_layer", true);
    if (pattern.empty() || (first && layer == 0) || (last && layer == layers - 1)) {
      return kNoWindow;
    }
    const auto period = static_cast<std::int64_t>(pattern.size());
    const std::int64_t place = (layer - (first ? 1 : 0)) % period;
    return std::max(kNoWindow, values_.number(fmt::format("{}pattern.{}", at, place)));
  }

  void take_rotary(const std::string& at, AttentionShape& attention) {
    attention.position = PositionKind::kNone;
    const bool is_local = attention.window != kNoWindow;
    if (!values_.has_prefix(at)) return;
    if (values_.flag(at + "no_global_rope") && !is_local) return;
    attention.position = PositionKind::kRotary;
    attention.rope_theta = values_.real(at + "theta", 500000);
    attention.rotary.fraction = values_.real(at + "partial_rotary_factor", 1);
    const std::string name = values_.text(at + "name");
    const char* const kernel = name == "fused"     ? "fused"
                               : name == "complex" ? "torch_complex"
                                                   : "torch";
    set_part(StackPart::kRotaryKernel, kernel);
    if (values_.has_section(at + "scaling")) take_stretch(at + "scaling", attention);
  }

  void take_stretch(const std::string& at, AttentionShape& attention) {
    const std::string made = values_.class_of(at);
    RotaryStretch& stretch = attention.rotary.stretch;
    stretch.factor = values_.real(at + ".factor", 1);
    stretch.original_positions = values_.number(at + ".old_context_len", 8192);
    for (const char* key : {".low_freq_proportion", ".high_freq_proportion", ".beta_fast",
                            ".beta_slow", ".attention_rescale_factor"}) {
      values_.text(at + key);  // constants of the table of angles
    }
    if (made.ends_with(".YaRNRoPEScalingConfig")) {
      stretch.kind = RotaryScaling::kYarn;
    } else if (made.ends_with(".StepwiseRoPEScalingConfig")) {
      stretch.kind = RotaryScaling::kLlama3;
    } else if (made.ends_with(".PIRoPEScalingConfig")) {
      stretch.kind = RotaryScaling::kLinear;
    } else if (made.ends_with(".ABFRoPEScalingConfig")) {
      attention.rope_theta = values_.real(at + ".new_theta", 8000000);
    } else {
      values_.refuse(fmt::format("{}.{}", at, kMadeBy),
                     "this scaling of positions is not modelled");
    }
  }

  void take_delta_net(const std::string& at, BlockShape& block) {
    block.mixer = MixerKind::kDeltaNet;
    RecurrentShape& net = block.recurrent;
    net.key_heads = values_.number(at + "n_heads", 16);
    net.heads = values_.number(at + "n_v_heads", net.key_heads);
    const std::int64_t heads = std::max<std::int64_t>(1, net.key_heads);
    net.key_dim = values_.number(at + "head_dim", read_.model.hidden / heads);
    net.value_dim = static_cast<std::int64_t>(static_cast<double>(net.key_dim) *
                                              values_.real(at + "expand_v", 2));
    net.convolution = values_.number(at + "conv_size", 4);
    net.convolution_bias = values_.flag(at + "conv_bias");
    for (const char* key : {"allow_neg_eigval", "norm_eps", "dtype"}) values_.text(at + key);
  }

  void take_experts(const std::string& at, BlockShape& block) {
    block.ffn_hidden = values_.number(at + "hidden_size", 256);
    ExpertShape& experts = block.experts;
    experts.count = values_.number(at + "num_experts", 1);
    experts.per_token = values_.number(at + "router.top_k", 1);
    experts.dropless = values_.text(at + "name") == "dropless";
    experts.capacity_factor = values_.real(at + "capacity_factor", 1);
    experts.shared_ffn = values_.number(at + "shared_mlp.hidden_size");
    if (experts.shared_ffn > 0) values_.flag(at + "shared_mlp.bias");
    RouterShape& router = experts.router;
    const bool is_sigmoid = values_.text(at + "router.gating_function") == "sigmoid";
    router.score = is_sigmoid ? RouterScore::kSigmoid : RouterScore::kAll;
    router.renormalises = !values_.text(at + "router.normalize_expert_weights").empty();
    router.correction_bias = values_.real(at + "router.bias_gamma") > 0;
    if (values_.flag(at + "router.uniform_expert_assignment")) {
      read_.parts[StackPart::kExpertLoad] = kBalancedLoad;
    }
  }

  void note(std::string text) {
    std::vector<std::string>& notes = read_.notes;
    if (std::find(notes.begin(), notes.end(), text) == notes.end()) {
      notes.push_back(std::move(text));
    }
  }

  OlmoValues& values_;
  OlmoModel& read_;
  std::vector<std::string> pattern_;
};

// Whether the text matches a pattern with stars (fnmatch).
bool matches_glob(std::string_view text, std::string_view glob) {
  if (glob.empty()) return text.empty();
  if (glob[0] == '*' && matches_glob(text, glob.substr(1))) return true;
  if (text.empty() || (glob[0] != '*' && glob[0] != text[0])) return false;
  return matches_glob(text.substr(1), glob[0] == '*' ? glob : glob.substr(1));
}

Status freeze(OlmoValues& values, OlmoModel& read) {
  constexpr const char* kKey = "model.freeze_params";
  const std::vector<std::string> frozen = values.list(kKey);
  if (frozen.empty()) return Ok{};
  for (const std::string& glob : frozen) {
    if (glob.find_first_of("[?") == std::string::npos) continue;
    return bad_input(fmt::format("{} has the pattern '{}'", kKey, glob), "",
                     "tpsim reads patterns with stars only, such as blocks.*.attention.*");
  }
  const auto match = [&](std::string_view name) {
    return std::any_of(frozen.begin(), frozen.end(),
                       [&](const std::string& glob) { return matches_glob(name, glob); });
  };
  return train_named_weights(read.model, read.parts, {kKey, match, true, true});
}

}  // namespace

Result<OlmoModel> olmo_model(OlmoValues& values, std::int64_t seq) {
  OlmoModel read;
  ModelSpec& model = read.model;
  model.hidden = values.number("model.d_model");
  model.vocab = values.number("model.vocab_size");
  model.vocab_multiple = 1;
  model.layers = values.number("model.n_layers");
  model.seq = seq;
  model.linear_bias = model.fused_qkv = false;
  model.tied_embedding = values.flag("model.tie_word_embeddings");
  model.embedding_norm = values.has_section("model.embedding_norm");
  model.ends.embedding_scale = values.real("model.embed_scale", 1);
  model.ends.head_bias = values.flag("model.lm_head.bias", true);
  constexpr std::int64_t kMostLayers = 10000;
  if (model.hidden < 1 || model.layers < 1 || model.layers > kMostLayers) {
    return bad_input("does not state the model's d_model and n_layers", "",
                     "name a script that trains a transformer");
  }
  if (values.text("model.name") == "normalized") {
    values.refuse("model.name", "nGPT is not modelled");
  }
  OlmoBlocks(values, read).take(model.layers);
  TPSIM_TRY_STATUS(freeze(values, read));
  TPSIM_TRY_STATUS(validate(model));
  return read;
}

}  // namespace tpsim

// Reads from Megatron's arguments the model, if the user does not name one, and the model settings
// that a run may choose. Source: megatron/training/arguments.py.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/software/launched_models.h"
#include "formats/unset_marks.h"
#include "frameworks/launch/launch_options.h"
#include "frameworks/launch/megatron_options.h"

namespace tpsim {
namespace {

using Options = std::vector<LaunchOption>;

const std::string* value_of(const Options& options, std::string_view name) {
  const LaunchOption* found = find_setting(options, name);
  return found == nullptr ? nullptr : &found->value;
}

// Returns the option's value as a number >= 0. Returns `fallback` if the option is absent, not a
// number or too large.
template <class T>
T number_of(const Options& options, std::string_view name, T fallback) {
  const std::string* text = value_of(options, name);
  const auto value = text == nullptr ? std::nullopt : parse_number<T>(*text);
  return value && *value >= 0 && *value <= T(1e9) ? *value : fallback;
}

void read_attention(const Options& options, ModelSpec& model) {
  AttentionShape& attention = model.attention;
  attention.heads = number_of<std::int64_t>(options, "--num-attention-heads", 0);
  const bool grouped = has_key(options, "--group-query-attention");
  attention.kv_heads =
      grouped ? number_of<std::int64_t>(options, "--num-query-groups", 1) : attention.heads;
  const std::int64_t usual = attention.heads > 0 ? model.hidden / attention.heads : 0;
  model.fused_qkv = attention.kv_heads == attention.heads;
  attention.head_dim = number_of<std::int64_t>(options, "--kv-channels", usual);
  const std::string kind = setting_value(options, "--position-embedding-type", "learned_absolute");
  attention.position = kind == "rope" || kind == "rotary" || kind == "yarn" ? PositionKind::kRotary
                       : kind == "alibi"                                    ? PositionKind::kAlibi
                       : kind == "none"                                     ? PositionKind::kNone
                                        : PositionKind::kLearned;
  attention.rope_theta = number_of<double>(options, "--rotary-base", 10000.0);
  attention.rotary.fraction = number_of<double>(options, "--rotary-percent", 1.0);
  if (has_key(options, "--multi-latent-attention")) {
    attention.latent = {.q_rank = number_of<std::int64_t>(options, "--q-lora-rank", 0),
                        .kv_rank = number_of<std::int64_t>(options, "--kv-lora-rank", 32),
                        .nope_dim = number_of<std::int64_t>(options, "--qk-head-dim", 128),
                        .rope_dim = number_of<std::int64_t>(options, "--qk-pos-emb-head-dim", 64),
                        .value_dim = number_of<std::int64_t>(options, "--v-head-dim", 128)};
    attention.head_dim = attention.latent.nope_dim + attention.latent.rope_dim;
    attention.kv_heads = attention.heads;
  }
  const std::string window = stated_window(options);
  const auto before = parse_number<std::int64_t>(window.substr(0, window.find(',')));
  if (before && *before >= 0) attention.window = *before + 1;
  attention.score.sinks = setting_value(options, "--softmax-type") == "learnable";
  const auto positions = number_of<std::int64_t>(options, "--max-position-embeddings", model.seq);
  if (attention.position == PositionKind::kLearned && positions != model.seq) {
    model.ends.positions = positions;
  }
}

void read_experts(const Options& options, ModelSpec& model) {
  model.experts.count = number_of<std::int64_t>(options, "--num-experts", 0);
  if (model.experts.count == 0) return;
  model.experts.per_token = number_of<std::int64_t>(options, "--moe-router-topk", 2);
  model.ffn_hidden = number_of<std::int64_t>(options, "--moe-ffn-hidden-size", model.ffn_hidden);
  model.experts.shared_ffn =
      number_of<std::int64_t>(options, "--moe-shared-expert-intermediate-size", 0);
  model.experts.shared_gate = has_key(options, "--moe-shared-expert-gate");
  RouterShape& router = model.experts.router;
  if (setting_value(options, "--moe-router-score-function") == "sigmoid") {
    router.score = RouterScore::kSigmoid;
    router.renormalises = model.experts.per_token > 1;
  } else if (has_key(options, "--moe-router-pre-softmax") && model.experts.per_token > 1) {
    router.score = RouterScore::kAll;
  }
  router.correction_bias = has_key(options, "--moe-router-enable-expert-bias");
  router.scaling = number_of<double>(options, "--moe-router-topk-scaling-factor", 1.0);
  router.groups = number_of<std::int64_t>(options, "--moe-router-num-groups", 1);
  router.groups_kept = number_of<std::int64_t>(options, "--moe-router-group-topk", router.groups);
}

// Returns the vocab size; 0 if unknown. Uses the padded size if it is stated, as in logs.
std::int64_t vocab_in(const Options& options) {
  const auto padded = number_of<std::int64_t>(options, "--padded-vocab-size", 0);
  if (padded > 0) return padded;
  const auto to = number_of<std::int64_t>(options, "--pad-vocab-size-to", 0);
  if (to > 0) return to;
  const auto vocab = number_of<std::int64_t>(options, "--vocab-size", 0);
  if (vocab > 0) return vocab;
  // Pai-Megatron-Patch: vocab sizes of its tokenizers, to which the script adds tokens
  // (tokenizer/__init__.py).
  const std::string patch = setting_value(options, "--patch-tokenizer-type");
  const auto more = number_of<std::int64_t>(options, "--extra-vocab-size", 0);
  constexpr std::int64_t kQwen2Words = 151643;
  constexpr std::int64_t kLlamaWords = 32000;
  if (more > 0) {
    if (patch == "Qwen2Tokenizer" || patch == "Qwen3Tokenizer") return kQwen2Words + more;
    if (patch == "LLamaTokenizer" || patch == "MistralTokenizer") return kLlamaWords + more;
  }
  constexpr std::int64_t kGpt2Words = 50257;  // Radford et al. 2019
  const std::string* tokenizer = value_of(options, "--tokenizer-type");
  // pretrain_gpt.py uses GPT-2's tokenizer by default. A merge file confirms this, since only
  // GPT-2's tokenizer has one.
  if (tokenizer == nullptr) return has_key(options, "--merge-file") ? kGpt2Words : 0;
  constexpr std::int64_t kLlama2Words = 32000;  // Touvron et al. 2023
  const std::string words = setting_value(options, "--tokenizer-model");
  const bool is_llamas = words.empty() || unset_name(words) || words.ends_with("tokenizer.model");
  return *tokenizer == "GPT2BPETokenizer"               ? kGpt2Words
         : *tokenizer == "Llama2Tokenizer" && is_llamas ? kLlama2Words
                                                        : 0;
}

// Returns the error for model arguments that are missing or refer to unset variables, and names
// these.
Error not_stated(const Options& options) {
  std::string unset, said;
  for (const std::string_view name :
       {"--num-layers", "--hidden-size", "--num-attention-heads", "--seq-length"}) {
    const std::string* text = value_of(options, name);
    const auto variable = text == nullptr ? std::nullopt : unset_name(*text);
    if (!variable) continue;
    unset += fmt::format("{}{} is {}", unset.empty() ? "" : ", ", name, *variable);
    said += fmt::format("{}{}", said.empty() ? "" : " ", unset_remedy(*variable));
  }
  if (unset.empty()) {
    return bad_input(
        "which model? The file does not state layers, hidden size, heads and sequence length", "",
        "add --model NAME or its config.json");
  }
  return bad_input(
      fmt::format("which model? It depends on variables that the script does not set: {}", unset),
      "", fmt::format("add {}, or set the variable by which the script chooses the model", said));
}

// An option for a size that few models have. `of` returns the size; 0 if the model lacks it.
struct RareNumber {
  std::string_view option;
  std::int64_t (*of)(const ModelSpec&);
};
constexpr RareNumber kRareNumbers[] = {
    {"--q-lora-rank", [](const ModelSpec& m) { return attention_shape(m).latent.q_rank; }},
    {"--kv-lora-rank", [](const ModelSpec& m) { return attention_shape(m).latent.kv_rank; }},
    {"--qk-head-dim", [](const ModelSpec& m) { return attention_shape(m).latent.nope_dim; }},
    {"--qk-pos-emb-head-dim",
     [](const ModelSpec& m) { return attention_shape(m).latent.rope_dim; }},
    {"--v-head-dim", [](const ModelSpec& m) { return attention_shape(m).latent.value_dim; }},
    {"--moe-shared-expert-intermediate-size",
     [](const ModelSpec& m) { return m.experts.shared_ffn; }},
    {"--mtp-num-layers", [](const ModelSpec& m) { return m.ends.prediction_layers; }},
};
struct RareSwitch {
  std::string_view option;
  bool (*of)(const ModelSpec&);
};
constexpr RareSwitch kRareSwitches[] = {
    {"--multi-latent-attention",
     [](const ModelSpec& m) { return attention_shape(m).latent.kv_rank > 0; }},
    {"--qk-layernorm",
     [](const ModelSpec& m) {
       return attention_shape(m).qk_norm != QkNorm::kNone || attention_shape(m).latent.kv_rank > 0;
     }},
    {"--add-qkv-bias",
     [](const ModelSpec& m) { return attention_shape(m).qkv_bias && !has_all_biases(m); }},
    {"--mtp-use-repeated-layer", [](const ModelSpec& m) { return m.ends.prediction_shared; }},
    {"--squared-relu", [](const ModelSpec& m) { return m.mlp == MlpKind::kReluSquared; }},
    {"--geglu", [](const ModelSpec& m) { return m.mlp == MlpKind::kGeglu; }},
};

Error other_model(std::string message) {
  return bad_input(std::move(message), "",
                   "name the model that the file trains: --model NAME or its config.json");
}

// Adds the router's options. Megatron's default is a softmax over the selected experts. This equals
// a softmax over all experts whose selected probabilities are renormalized.
void add_router(const ExpertShape& experts, LaunchOptions& out) {
  const RouterShape& router = experts.router;
  if (router.score == RouterScore::kAll && !router.renormalises && experts.per_token > 1)
    out.add("--moe-router-pre-softmax");
  if (router.score == RouterScore::kSigmoid) out.add("--moe-router-score-function", "sigmoid");
  if (router.correction_bias) out.add("--moe-router-enable-expert-bias");
  if (router.scaling != 1) {
    out.add("--moe-router-topk-scaling-factor", fmt::format("{}", router.scaling));
  }
  if (router.groups == 1) return;
  out.add("--moe-router-num-groups", router.groups);
  out.add("--moe-router-group-topk", router.groups_kept);
}

// Options that state which layers have experts, in the order of precedence.
constexpr std::string_view kLayerOptions[] = {"--moe-layer-freq", "--first-k-dense-replace"};

// Removes kLayerOptions. Returns an error if they do not match the model.
Status take_layer_kinds(const ModelSpec& model, Options& options) {
  for (const std::string_view name : kLayerOptions) {
    const LaunchOption* option = find_setting(options, name);
    if (option == nullptr) continue;
    TPSIM_TRY(const std::vector<bool> said, expert_layers(*option, model.layers));
    std::vector<bool> has;
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      has.push_back(block_of_kind(model, block_kind(model, layer)).experts.count > 0);
    }
    if (has_experts(model) && said != has) {
      return other_model(
          fmt::format("{} {} puts experts in {} of {} layers; the model has experts in {}", name,
                      option->value, std::count(said.begin(), said.end(), true), model.layers,
                      std::count(has.begin(), has.end(), true)));
    }
    drop_settings(options, name);
  }
  return Ok{};
}

// Sets the layers without experts, which have an FFN of --ffn-hidden-size, and the layers without
// a window.
Status read_layer_kinds(const Options& options, std::int64_t dense_ffn, ModelSpec& model) {
  std::vector<BlockShape> blocks(static_cast<std::size_t>(model.layers), model);
  for (const std::string_view name : kLayerOptions) {
    const LaunchOption* option = find_setting(options, name);
    if (option == nullptr || !has_experts(model)) continue;
    TPSIM_TRY(const std::vector<bool> said, expert_layers(*option, model.layers));
    for (std::size_t i = 0; i < said.size(); ++i) {
      if (said[i]) continue;
      blocks[i].ffn_hidden = dense_ffn;
      blocks[i].experts = {};
    }
    break;
  }
  const LaunchOption* const windows = find_setting(options, "--window-attn-skip-freq");
  if (windows != nullptr && model.attention.window > 0) {
    TPSIM_TRY(const std::vector<bool> said, layer_flags(*windows, model.layers));
    for (std::size_t i = 0; i < said.size(); ++i) {
      if (!said[i]) blocks[i].attention.window = 0;
    }
  }
  set_blocks(model, blocks);
  return Ok{};
}

}  // namespace

std::int64_t usual_ffn(const ModelSpec& model) {
  return is_gated(model.mlp) ? 8 * model.hidden / 3 / 64 * 64 : 4 * model.hidden;
}

Result<StatedModel> model_of_megatron(const Options& options) {
  StatedModel stated;
  ModelSpec& model = stated.model;
  model.layers = number_of<std::int64_t>(options, "--num-layers", 0);
  model.hidden = number_of<std::int64_t>(options, "--hidden-size", 0);
  model.seq = number_of<std::int64_t>(options, "--seq-length", 0);
  const bool states = model.layers > 0 && model.hidden > 0 && model.seq > 0 &&
                      number_of<std::int64_t>(options, "--num-attention-heads", 0) > 0;
  if (!states) return not_stated(options);
  model.mlp = has_key(options, "--swiglu") || has_key(options, "--glu-activation")
                  ? MlpKind::kSwiglu
              : has_key(options, "--squared-relu") ? MlpKind::kReluSquared
              : has_key(options, "--quick-geglu")  ? MlpKind::kClampedSwiglu
              : has_key(options, "--geglu")        ? MlpKind::kGeglu
                                                   : MlpKind::kGelu;
  model.mlp_limit = number_of<double>(options, "--activation-func-clamp-value", 0.0);
  const auto dense_ffn = number_of<std::int64_t>(options, "--ffn-hidden-size", usual_ffn(model));
  model.ffn_hidden = dense_ffn;
  read_attention(options, model);
  read_experts(options, model);
  model.ends.prediction_layers = number_of<std::int64_t>(options, "--mtp-num-layers", 0);
  model.ends.prediction_shared =
      model.ends.prediction_layers > 0 && has_key(options, "--mtp-use-repeated-layer");
  const bool rms = matches_any(setting_value(options, "--normalization"), "RMSNorm rmsnorm");
  model.norm = rms ? NormKind::kRmsNorm : NormKind::kLayerNorm;
  model.norm_epsilon = number_of<double>(options, "--norm-epsilon", 1e-5);
  model.linear_bias = !has_key(options, "--disable-bias-linear");
  // Biases of experts are planned, not trained.
  const bool has_expert_biases = model.linear_bias && has_experts(model);
  if (has_expert_biases) model.linear_bias = false;
  model.experts.bias = model.experts.router.bias = model.mlp_bias = has_expert_biases;
  model.attention.output_bias = has_expert_biases;
  model.attention.qkv_bias = has_key(options, "--add-qkv-bias") || has_expert_biases;
  const bool has_latents = model.attention.latent.kv_rank > 0;  // which have their own norms
  model.attention.qk_norm =
      has_key(options, "--qk-layernorm") && !has_latents ? QkNorm::kHead : QkNorm::kNone;
  model.tied_embedding = !has_key(options, "--untie-embeddings-and-output-weights");
  model.embedding_norm = has_key(options, "--embed-layernorm");
  model.residual_from_after_norm = has_key(options, "--apply-residual-connection-post-layernorm");
  model.vocab = vocab_in(options);
  stated.has_vocab = model.vocab > 0;
  take_run_choices(options, false, model);
  TPSIM_TRY_STATUS(read_layer_kinds(options, dense_ffn, model));
  return stated;
}

void take_run_choices(const Options& options, bool keeps_seq, ModelSpec& model) {
  if (!keeps_seq) model.seq = number_of<std::int64_t>(options, "--seq-length", model.seq);
  model.attention_dropout = number_of<double>(options, "--attention-dropout", 0.1);
  model.hidden_dropout = number_of<double>(options, "--hidden-dropout", 0.1);
  if (!has_experts(model)) return;
  const auto capacity = number_of<double>(options, "--moe-expert-capacity-factor", 0);
  model.experts.dropless = capacity == 0;
  model.experts.capacity_factor = capacity == 0 ? 1.0 : capacity;
}

void add_rare_shapes(const ModelSpec& model, LaunchOptions& out) {
  for (const RareSwitch& row : kRareSwitches) {
    if (row.of(model)) out.add(std::string(row.option));
  }
  for (const RareNumber& row : kRareNumbers) {
    if (row.of(model) > 0) out.add(std::string(row.option), row.of(model));
  }
  const std::string window = window_of(model);
  if (!window.empty()) out.add("--window-size", window);
  const LaunchOptions special = special_options(model);
  for (const LaunchOption& one : special.all()) out.add(one.key, one.value);
  const double turned = attention_shape(model).rotary.fraction;
  if (turned != 1) out.add("--rotary-percent", fmt::format("{}", turned));
  if (!has_experts(model)) return;
  add_router(model.experts, out);
  if (model.experts.shared_gate) out.add("--moe-shared-expert-gate");
  const std::string layers = layers_with_experts(model);
  if (!layers.empty()) out.add("--moe-layer-freq", layers);
}

bool is_rare_shape(std::string_view option) {
  const auto named = [&](const auto& row) { return row.option == option; };
  constexpr std::string_view kOthers =
      "--rotary-percent --window-size --moe-layer-freq --moe-router-score-function "
      "--moe-router-num-groups --moe-router-topk-scaling-factor --moe-router-group-topk";
  return std::any_of(std::begin(kRareNumbers), std::end(kRareNumbers), named) ||
         matches_any(option, kOthers) || is_special_option(option);
}

Status take_rare_shapes(const ModelSpec& model, Options& options, Unsaid unsaid) {
  const std::string* const experts = value_of(options, "--num-experts");
  if (experts != nullptr && !has_experts(model)) {
    return other_model(fmt::format("--num-experts is {}; the model has none", *experts));
  }
  for (const RareNumber& row : kRareNumbers) {
    if (!has_key(options, row.option)) continue;
    const auto value = number_of<std::int64_t>(options, row.option, 0);
    if (value != row.of(model)) {
      return other_model(
          fmt::format("{} is {}; the model has {}", row.option, value, row.of(model)));
    }
    drop_settings(options, row.option);
  }
  for (const RareSwitch& row : kRareSwitches) {
    const bool set = has_key(options, row.option);
    const bool has = row.of(model);
    const bool implied =  // latent attention implies its norm
        has && (unsaid == Unsaid::kIsTheModels || row.option == "--qk-layernorm");
    if (set != has && !implied) {
      return other_model(set ? fmt::format("{} does not match the model", row.option)
                             : fmt::format("{} is missing: the model needs it", row.option));
    }
    drop_settings(options, row.option);
  }
  TPSIM_TRY_STATUS(take_window(model, options));
  TPSIM_TRY_STATUS(take_special_options(model, options, unsaid));
  return take_layer_kinds(model, options);
}

void note_rare_shapes(const ModelSpec& model, Options& options, std::vector<std::string>& notes) {
  Options left = options;
  const Status taken = take_rare_shapes(model, left, Unsaid::kIsTheModels);
  if (taken.ok()) {
    options = std::move(left);
    return;
  }
  notes.push_back(fmt::format("{}; the prediction follows the named model", taken.error().message));
  std::erase_if(options, [](const LaunchOption& one) {
    const auto is_it = [&](const auto& row) { return row.option == one.key; };
    const bool says_layers = std::find(std::begin(kLayerOptions), std::end(kLayerOptions),
                                       one.key) != std::end(kLayerOptions);
    return is_rare_shape(one.key) || says_layers ||
           std::any_of(std::begin(kRareSwitches), std::end(kRareSwitches), is_it) ||
           std::any_of(std::begin(kRareNumbers), std::end(kRareNumbers), is_it) ||
           is_special_option(one.key);
  });
}

}  // namespace tpsim

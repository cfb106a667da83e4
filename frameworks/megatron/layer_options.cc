// Megatron-LM's options for models whose layers differ, and for rare attention variants,
// activations and mixers. Rules: megatron/training/arguments.py, megatron/core/transformer/utils.py
// (is_layer_window_attention) and megatron/core/models/hybrid/hybrid_layer_allocation.py of
// d98e8a6.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/software/launched_models.h"
#include "frameworks/launch/facts.h"
#include "frameworks/launch/launch_options.h"
#include "frameworks/launch/megatron_options.h"

namespace tpsim {
namespace {

using Options = std::vector<LaunchOption>;

// Options whose value is a list with a flag 0 or 1 per layer, or a number N: every N-th layer has
// flag 0 and the others have 1.
constexpr std::string_view kLayerFlags = "--window-attn-skip-freq --linear-attention-freq";
constexpr const char* kVariant = "--experimental-attention-variant";

// Whether the option changes neither time nor memory, so that its value is not compared.
bool is_free(std::string_view name) {
  return matches_any(name, fact_names("megatron-options", "free"));
}

BlockShape block_at(const ModelSpec& model, std::int64_t layer) {
  return block_of_kind(model, block_kind(model, layer));
}

// Returns the flag of each layer as "([1]*3+[0]*1)". Empty if `has` is true for all layers or for
// none.
template <class Has>
std::string layer_flags(const ModelSpec& model, Has has) {
  std::string text;
  bool all = true, none = true;
  for (std::int64_t layer = 0; layer < model.layers;) {
    const bool with = has(block_at(model, layer));
    std::int64_t count = 1;
    while (layer + count < model.layers && has(block_at(model, layer + count)) == with) ++count;
    text += fmt::format("{}[{}]*{}", text.empty() ? "" : "+", with ? 1 : 0, count);
    all = all && with;
    none = none && !with;
    layer += count;
  }
  return all || none ? "" : "(" + text + ")";
}

const BlockShape* block_with(const std::vector<BlockShape>& blocks, MixerKind mixer) {
  const auto found = std::find_if(blocks.begin(), blocks.end(),
                                  [&](const BlockShape& one) { return one.mixer == mixer; });
  return found == blocks.end() ? nullptr : &*found;
}

void add_recurrences(const ModelSpec& model, LaunchOptions& out) {
  const std::vector<BlockShape> blocks = block_shapes(model);
  if (const BlockShape* const delta = block_with(blocks, MixerKind::kDeltaNet)) {
    const RecurrentShape& shape = delta->recurrent;
    out.add(kVariant, std::string("gdn"));
    const std::string flags =
        layer_flags(model, [](const BlockShape& one) { return one.mixer == MixerKind::kDeltaNet; });
    out.add("--linear-attention-freq", flags.empty() ? fmt::format("[1]*{}", model.layers) : flags);
    out.add("--linear-conv-kernel-dim", shape.convolution);
    out.add("--linear-key-head-dim", shape.key_dim);
    out.add("--linear-value-head-dim", shape.value_dim);
    out.add("--linear-num-key-heads", shape.key_heads);
    out.add("--linear-num-value-heads", shape.heads);
  }
  if (const BlockShape* const mamba = block_with(blocks, MixerKind::kMamba2)) {
    const RecurrentShape& shape = mamba->recurrent;
    out.add("--mamba-state-dim", shape.key_dim);
    out.add("--mamba-head-dim", shape.value_dim);
    out.add("--mamba-num-groups", shape.key_heads);
    out.add("--mamba-num-heads", shape.heads);
  }
}

void add_indexer(const ModelSpec& model, LaunchOptions& out) {
  const std::vector<BlockShape> blocks = block_shapes(model);
  const auto indexed = std::find_if(blocks.begin(), blocks.end(),
                                    [](const BlockShape& one) { return !one.planned.empty(); });
  const auto layers = indexed_layers(model);
  if (model.attention.chosen == 0 || indexed == blocks.end() || !layers) return;
  const auto scores =
      std::find_if(indexed->planned.begin(), indexed->planned.end(),
                   [](const PlannedOp& one) { return one.kind == PlannedOpKind::kPairs; });
  if (scores == indexed->planned.end()) return;
  out.add(kVariant, std::string("dsa"));
  out.add("--dsa-indexer-n-heads", scores->heads);
  out.add("--dsa-indexer-head-dim", scores->key_dim);
  out.add("--dsa-indexer-topk", model.attention.chosen);
  if (layers->frequency == 1) return;
  out.add("--dsa-indexer-topk-freq", layers->frequency);
  out.add("--dsa-indexer-skip-topk-offset", layers->offset);
}

Error other_layers(std::string message) {
  return bad_input(std::move(message), "",
                   "name the model that the file trains: --model NAME or its config.json");
}

// Whether both options have the same meaning: equal texts, equal numbers, or equal flags for all
// layers.
bool is_same_option(const LaunchOption& said, const LaunchOption& wanted, std::int64_t layers) {
  if (said.value == wanted.value) return true;
  const auto a = parse_number<double>(said.value), b = parse_number<double>(wanted.value);
  if (!matches_any(said.key, kLayerFlags)) return a && a == b;
  const auto flags = layer_flags(wanted, layers), stated = layer_flags(said, layers);
  return flags.ok() && stated.ok() && *stated == *flags;
}

// Whether the option has no effect because the option that it depends on is missing. Sizes of Mamba
// layers depend on a layer pattern, which is compared with the model elsewhere.
bool has_no_effect(const LaunchOption& option, std::string_view variant, const ModelSpec& model) {
  if (option.key.starts_with("--mamba-")) return !is_hybrid_pattern(model);
  // Options that have an effect only with this value of kVariant.
  for (const char* const needed : {"gdn", "dsa"}) {
    if (matches_any(option.key, fact_names("megatron-options", needed))) return variant != needed;
  }
  return false;
}

bool is_megatrons_default(const LaunchOption& option) {
  return (option.key == "--softmax-type" && option.value == "vanilla") ||
         (option.key == "--glu-linear-offset" && matches_any(option.value, "0 0.0"));
}

}  // namespace

Result<std::vector<bool>> layer_flags(const LaunchOption& option, std::int64_t layers) {
  const auto every = parse_number<std::int64_t>(option.value);
  if (!every || *every < 1) return expert_layers(option, layers);
  std::vector<bool> flags;
  for (std::int64_t i = 1; i <= layers; ++i) flags.push_back(i % *every != 0);
  return flags;
}

std::string layers_with_experts(const ModelSpec& model) {
  if (model.other_blocks.empty() || !has_experts(model) || is_hybrid_pattern(model)) return "";
  return layer_flags(model, [](const BlockShape& one) { return one.experts.count > 0; });
}

std::int64_t window_in(const ModelSpec& model) {
  std::int64_t window = model.attention.window;
  for (const BlockShape& block : model.other_blocks) {
    window = std::max(window, block.attention.window);
  }
  return window;
}

std::string stated_window(const Options& options) {
  std::string window = setting_value(options, "--window-size");
  std::erase_if(window, [](char c) { return c == '(' || c == ')' || c == ' '; });
  return window == "-1,-1" ? "" : window;
}

std::string window_of(const ModelSpec& model) {
  const std::int64_t window = window_in(model);
  return window > 0 ? fmt::format("{},0", window - 1) : "";
}

Status take_window(const ModelSpec& model, Options& options) {
  const std::string window = stated_window(options);
  if (window.empty()) return Ok{};
  if (window != window_of(model)) {
    return other_layers(fmt::format("--window-size is {}; the model has {}", window,
                                    window_in(model) > 0 ? window_of(model) : "none"));
  }
  drop_settings(options, "--window-size");
  return Ok{};
}

LaunchOptions special_options(const ModelSpec& model) {
  LaunchOptions out;
  const AttentionShape& attention = attention_shape(model);
  const std::string windows =
      layer_flags(model, [](const BlockShape& one) { return one.attention.window > 0; });
  if (!windows.empty() && !is_hybrid_pattern(model)) out.add("--window-attn-skip-freq", windows);
  if (attention.score.sinks) out.add("--softmax-type", std::string("learnable"));
  if (model.mlp == MlpKind::kClampedSwiglu) {
    out.add("--quick-geglu");
    out.add("--glu-linear-offset", std::string("1.0"));
    if (model.mlp_limit > 0) {
      out.add("--activation-func-clamp-value", fmt::format("{}", model.mlp_limit));
    }
  }
  if (attention.output_gate) out.add("--attention-output-gate");
  if (model.norm_plus_one) out.add("--apply-layernorm-1p");
  add_recurrences(model, out);
  add_indexer(model, out);
  if (model.experts.latent > 0) out.add("--moe-latent-size", model.experts.latent);
  add_heterogeneous_layers(model, out);
  return out;
}

bool is_special_option(std::string_view name) {
  return matches_any(name, fact_names("megatron-options", "special"));
}

Status take_special_options(const ModelSpec& model, Options& options, Unsaid unsaid) {
  std::erase_if(options, is_megatrons_default);
  const std::string variant = setting_value(options, kVariant);
  std::erase_if(options,
                [&](const LaunchOption& one) { return has_no_effect(one, variant, model); });
  const LaunchOptions wanted = special_options(model);
  const bool has_file = has_key(options, kHeterogeneousPath);  // with the layers of the model
  for (const LaunchOption& one : wanted.all()) {
    const LaunchOption* const said = find_setting(options, one.key);
    const bool may_lack = unsaid == Unsaid::kIsTheModels || is_free(one.key) ||
                          (has_file && one.key == kHeterogeneousJson);
    if (said == nullptr && !may_lack) {
      return other_layers(fmt::format("{} is missing: the model needs {}", one.key,
                                      one.value.empty() ? "it" : one.value));
    }
    if (said != nullptr && !is_same_option(*said, one, model.layers)) {
      return other_layers(
          fmt::format("{} is {}; the model has {}", one.key, said->value, one.value));
    }
    drop_settings(options, one.key);
  }
  for (const LaunchOption& left : options) {
    if (!is_special_option(left.key) || is_free(left.key)) continue;
    if (unsaid == Unsaid::kIsTheModels) continue;
    return other_layers(fmt::format("{} does not match the model", left.key));
  }
  drop_settings(options, fact_names("megatron-options", "special"));
  return Ok{};
}

std::string hybrid_pattern(const ModelSpec& model, const std::vector<std::int64_t>& stages) {
  std::string text;
  std::int64_t layer = 0;
  for (std::size_t chunk = 0; chunk < stages.size(); ++chunk) {
    if (chunk > 0) text += '|';
    for (std::int64_t i = 0; i < stages[chunk]; ++i) text += layer_letter(block_at(model, layer++));
  }
  for (std::int64_t depth = 0; depth < model.ends.prediction_layers; ++depth) {
    text += '/';
    for (const std::int64_t kind : prediction_kinds(model)) {
      text += layer_letter(block_of_kind(model, kind));
    }
  }
  return text;
}

Result<std::vector<std::int64_t>> stages_of_pattern(const std::string& pattern,
                                                    const ModelSpec& model, std::int64_t pp) {
  const std::string decoder = pattern.substr(0, pattern.find('/'));
  std::vector<std::int64_t> stages(1, 0);
  for (const char symbol : decoder) {
    if (symbol == '|') {
      stages.push_back(0);
    } else {
      ++stages.back();
    }
  }
  ModelSpec plain = model;
  plain.ends.prediction_layers = 0;
  std::int64_t layers = 0;
  for (const std::int64_t count : stages) layers += count;
  if (!is_hybrid_pattern(model) || layers != model.layers ||
      hybrid_pattern(plain, stages) != decoder) {
    return other_layers(
        fmt::format("the layer pattern {} does not match the model's layers", pattern));
  }
  if (stages.size() > 1 || pp == 1) return stages;
  if (model.layers % pp != 0) {
    return bad_input(
        fmt::format("{} layers are not divisible by the number of pipeline stages", model.layers));
  }
  return std::vector<std::int64_t>(static_cast<std::size_t>(pp), model.layers / pp);
}

}  // namespace tpsim

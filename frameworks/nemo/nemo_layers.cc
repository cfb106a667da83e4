// The layers of models without a bridge, as settings of Megatron-Bridge's recipe
// vanilla_gpt_pretrain_config. Sources: recipes/gpt/h100/vanilla_gpt.py, models/gpt_provider.py and
// utils/activation_map.py of Megatron-Bridge 067f987.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/software/launched_models.h"
#include "formats/settings_text.h"
#include "frameworks/launch/launch_options.h"
#include "frameworks/launch/megatron_options.h"
#include "frameworks/launch/nemo_settings.h"

namespace tpsim {
namespace {

using Settings = std::vector<FlatSetting>;

// Whether the YAML states the layers, because no recipe does.
bool states_layers(const ModelSpec& model) {
  return !has_bridge(model) && !is_hybrid_pattern(model) && has_bridge_options(model);
}

std::string activation_of(MlpKind mlp) {
  switch (mlp) {
    case MlpKind::kSwiglu: return "silu";
    case MlpKind::kRelu: return "relu";
    case MlpKind::kReluSquared: return "squared_relu";
    case MlpKind::kClampedSwiglu: return "quick_gelu";
    default: return "gelu";
  }
}

std::string word(bool value) { return value ? "true" : "false"; }

// Returns an option of special_options() as a setting of the provider.
FlatSetting provider_setting(const LaunchOption& option, const ModelSpec& model) {
  if (option.key == "--apply-layernorm-1p") return {"layernorm_zero_centered_gamma", "true", 0};
  std::string key = option.key.substr(2);
  std::replace(key.begin(), key.end(), '-', '_');
  if (option.value.find('[') == std::string::npos) {
    return {std::move(key), option.value.empty() ? "true" : option.value, 0};
  }
  std::vector<int> flags;
  if (const auto layers = expert_layers(option, model.layers); layers.ok()) {
    for (const bool flag : *layers) flags.push_back(flag ? 1 : 0);
  }
  return {std::move(key), fmt::format("[{}]", fmt::join(flags, ", ")), 0};
}

// Returns the layers as settings of the section "model".
Settings layer_settings(const ModelSpec& model) {
  const AttentionShape& attention = attention_shape(model);
  const bool rotary = attention.position == PositionKind::kRotary;
  const bool has_none = attention.position == PositionKind::kNone;
  Settings out = {{"normalization", model.norm == NormKind::kRmsNorm ? "RMSNorm" : "LayerNorm", 0},
                  {"layernorm_epsilon", fmt::format("{}", model.norm_epsilon), 0},
                  {"activation_func", activation_of(model.mlp), 0},
                  {"gated_linear_unit", word(is_gated(model.mlp)), 0},
                  {"add_bias_linear", word(has_all_biases(model)), 0},
                  {"share_embeddings_and_output_weights", word(model.tied_embedding), 0},
                  {"position_embedding_type",
                   rotary     ? "rope"
                   : has_none ? "none"
                              : "learned_absolute",
                   0}};
  if (rotary) {
    out.push_back({"rotary_base", fmt::format("{}", attention.rope_theta), 0});
    out.push_back({"rotary_percent", fmt::format("{}", attention.rotary.fraction), 0});
  }
  const std::int64_t window = window_in(model);
  if (window > 0) out.push_back({"window_size", fmt::format("[{}, 0]", window - 1), 0});
  const LaunchOptions special = special_options(model);
  for (const LaunchOption& one : special.all()) {
    if (one.key != "--quick-geglu") out.push_back(provider_setting(one, model));
  }
  return out;
}

// Returns the switches of fused kernels, which recipes of families with a bridge set and the
// provider's defaults do not.
Settings kernel_settings(const ModelSpec& model, const std::vector<LaunchOption>& options) {
  struct Kernel {
    const char* key;
    const char* switched_off_by;
    bool exists;
  };
  const bool rotary = attention_shape(model).position == PositionKind::kRotary;
  const bool gelu = model.mlp == MlpKind::kGelu && has_all_biases(model);
  Settings out;
  for (const Kernel& one :
       {Kernel{"apply_rope_fusion", "--no-rope-fusion", rotary},
        Kernel{"bias_activation_fusion", "--no-bias-swiglu-fusion", is_gated(model.mlp) || gelu},
        Kernel{"bias_dropout_fusion", "--no-bias-dropout-fusion", true}}) {
    const bool is_on = one.exists && !has_key(options, one.switched_off_by);
    if (is_on) out.push_back({one.key, "true", 0});
  }
  return out;
}

}  // namespace

Settings nemo_layers(const ModelSpec& model, const std::vector<LaunchOption>& options) {
  if (!states_layers(model)) return {};
  Settings out = layer_settings(model);
  for (FlatSetting& kernel : kernel_settings(model, options)) out.push_back(std::move(kernel));
  return out;
}

Status take_nemo_layers(const ModelSpec& model, Settings& settings,
                        std::vector<std::string>* differences) {
  if (!states_layers(model)) return Ok{};
  const Settings joined = with_lists_joined(settings);
  for (const FlatSetting& wanted : layer_settings(model)) {
    const std::string key = "model." + wanted.key;
    std::string value = wanted.value;
    std::erase_if(value, [](char c) { return c == '[' || c == ']' || c == ','; });
    const FlatSetting* const stated = find_setting(joined, key);
    if (stated == nullptr) continue;
    if (!is_same_value(stated->value, value)) {
      std::string text = fmt::format("{} is {}; the model has {}", key, stated->value, value);
      if (differences == nullptr) {
        return bad_input(std::move(text), "", "name the model that the file trains: --model NAME");
      }
      differences->push_back(text + "; the prediction follows the named model");
    }
    std::erase_if(settings, [&](const FlatSetting& one) {
      return one.key == key || one.key.starts_with(key + ".");
    });
  }
  return Ok{};
}

}  // namespace tpsim

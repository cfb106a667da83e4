// Reads hybrid models, whose recipes state the layers by a pattern of letters: Mamba-2, attention,
// MLP and experts. These are HybridModelProvider of Megatron-Bridge, and MambaConfig and
// NemotronHConfig of NeMo 2. The settings are converted to an equivalent config.json of Nemotron-H.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/model/model_json.h"
#include "core/software/launched_models.h"
#include "frameworks/launch/megatron_options.h"
#include "frameworks/launch/programs.h"
#include "frameworks/nemo/nemo_run.h"

namespace tpsim {
namespace {

using Settings = std::vector<FlatSetting>;

std::string text_of_setting(const Settings& settings, std::string_view key) {
  return setting_value(settings, fmt::format("model.{}", key));
}

std::int64_t count_of(const Settings& settings, std::string_view key, std::int64_t unset) {
  return setting_number(settings, fmt::format("model.{}", key), unset);
}

// Returns only the letters of the layers. '|' separates pipeline stages; '/' precedes the blocks of
// MTP layers.
std::string letters_of(std::string pattern) {
  pattern = pattern.substr(0, pattern.find('/'));
  std::erase(pattern, '|');
  return pattern;
}

// Returns the activation of the MLP layers. Nemotron-H uses squared ReLU; other hybrid models that
// tpsim reads use GELU.
Result<MlpKind> activation_of(const Settings& settings) {
  const std::string name = text_of_setting(settings, "activation_func");
  if (text_of_setting(settings, "gated_linear_unit") == "true") {
    return bad_input("tpsim cannot read a hybrid model with gated MLP layers");
  }
  const bool is_squared = name.find("squared_relu") != std::string::npos ||
                          name.find("NemotronHConfigBase.<lambda>") != std::string::npos;
  if (is_squared) return MlpKind::kReluSquared;
  if (name.find("gelu") != std::string::npos) return MlpKind::kGelu;
  return bad_input(fmt::format("tpsim cannot read a hybrid model with the activation {}", name));
}

}  // namespace

std::string hybrid_pattern(const Settings& settings) {
  const std::string pattern = text_of_setting(settings, "hybrid_layer_pattern");
  return letters_of(pattern.empty() ? text_of_setting(settings, "hybrid_override_pattern")
                                    : pattern);
}

Result<ModelSpec> hybrid_model(const Settings& settings, std::int64_t vocab) {
  const std::string pattern = hybrid_pattern(settings);
  const std::int64_t hidden = count_of(settings, "hidden_size", 0);
  const std::int64_t heads = count_of(settings, "num_attention_heads", 1);
  const std::int64_t head_dim = count_of(settings, "mamba_head_dim", 64);
  const std::int64_t predictions = count_of(settings, "mtp_num_layers", 0);
  const std::string of_prediction = text_of_setting(settings, "mtp_hybrid_override_pattern");
  if (hidden < 1 || heads < 1 || head_dim < 1) {
    return bad_input("the recipe's hybrid model does not state its hidden size and heads");
  }
  const std::size_t unknown = pattern.find_first_not_of("ME*-");
  if (unknown != std::string::npos) {
    return bad_input(fmt::format("tpsim cannot read the layer '{}' in the pattern {}",
                                 pattern.substr(unknown, 1), pattern),
                     "", "tpsim reads the layer letters M, E, * and -");
  }
  TPSIM_TRY(const MlpKind activation, activation_of(settings));
  Settings sizes = settings;
  put_settings({{"layers", std::to_string(pattern.size())},
                {"pattern", pattern},
                {"vocab", std::to_string(vocab)}},
               sizes);
  TPSIM_TRY(ModelSpec model, model_by_rules("nemo-hybrid", sizes, "the recipe's model"));
  model.name.clear();
  model.mlp = activation;
  model.ends.prediction_shared =
      predictions > 0 && text_of_setting(settings, "mtp_use_repeated_layer") == "true";
  if (predictions == 0) return model;
  std::string planned;
  for (const std::int64_t kind : prediction_kinds(model)) {
    planned += layer_letter(block_of_kind(model, kind));
  }
  if (!of_prediction.empty() && of_prediction != planned) {
    return bad_input(
        fmt::format("multi-token prediction layers with the pattern {} are not modelled",
                    of_prediction),
        "",
        fmt::format("only the pattern {} is modelled, which is that of the model's last layers",
                    planned));
  }
  return model;
}

Status check_decoder(const Settings& settings) {
  struct Other {
    std::string_view name, words;
  };
  constexpr Other kOthers[] = {
      {"Bert", "an encoder"},
      {"T5", "an encoder with a decoder"},
      {"Hyena", "a model of long convolutions with fp32 residuals"},
      {"Reranker", "a model that scores pairs of texts"},
      {"WanModel", "a diffusion model"},
  };
  const std::string made = text_of_setting(settings, kMadeBy);
  const std::string name = made.substr(made.rfind('.') + 1);
  for (const Other& other : kOthers) {
    if (name.find(other.name) == std::string::npos) continue;
    return bad_input(fmt::format("trains {} ({}), which is not modelled", name, other.words));
  }
  return Ok{};
}

std::int64_t vocab_of_tokenizer(const Settings& settings, const ImportInputs& inputs,
                                std::string& source) {
  const auto given = inputs.given.find("vocab-size");
  if (given != inputs.given.end()) {
    return parse_number<std::int64_t>(given->second).value_or(0);
  }
  for (const char* key : {"model.vocab_size", "tokenizer.vocab_size"}) {
    if (const std::int64_t vocab = setting_number(settings, key); vocab > 0) return vocab;
  }
  for (const char* key : {"tokenizer.tokenizer_model", "dataset.tokenizer.model_name",
                          "model.tokenizer.model_name", "resume.restore_config.path"}) {
    std::string name = setting_value(settings, key);
    if (name.find('/') == std::string::npos || !inputs.load) continue;
    constexpr std::string_view kScheme = "nemo://";
    if (name.starts_with(kScheme)) name.erase(0, kScheme.size());
    if (const auto named = inputs.load(name); named.ok()) {
      source = name;
      return named->vocab;
    }
  }
  // NeMo's MockDataModule creates GPT-2's tokenizer unless the recipe sets another.
  const std::string data = setting_value(settings, fmt::format("dataset.{}", kMadeBy));
  const bool has_other = has_key(settings, fmt::format("dataset.tokenizer.{}", kMadeBy));
  if (!data.ends_with(".MockDataModule") || has_other) return 0;
  source = "GPT-2, the default for mock data";
  return 50257;
}

}  // namespace tpsim

// Sources: axolotl/utils/freeze.py; LLaMA-Factory's src/llamafactory/model/adapter.py
// (_setup_freeze_tuning) and hparams/finetuning_args.py.
#include "frameworks/huggingface/frozen_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/trained_weights.h"

namespace tpsim {
namespace {

constexpr const char* kPatternKey = "unfrozen_parameters";

// axolotl reads each dot literally, and matches the start of a name. A range of rows at the end,
// such as [:32000], masks gradients: the whole tensor is trained.
Result<std::regex> regex_of(std::string pattern) {
  const std::size_t range = pattern.rfind('[');
  if (range != std::string::npos && pattern.find(':', range) != std::string::npos) {
    pattern.resize(range);
  }
  for (std::size_t at = 0; (at = pattern.find('.', at)) != std::string::npos; at += 2) {
    pattern.insert(at, at > 0 && pattern[at - 1] == '\\' ? "" : "\\");
  }
  try {
    return std::regex(pattern);
  } catch (const std::regex_error& error) {
    return bad_input(fmt::format("{}: '{}' is not a regular expression: {}", kPatternKey, pattern,
                                 error.what()));
  }
}

// Whether a dot-separated part of the name begins with the module's name: "mlp",
// "self_attn.q_proj".
bool has_module(std::string_view name, const std::vector<std::string>& modules) {
  return std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
    return name.find("." + module + ".") != std::string_view::npos ||
           name.starts_with(module + ".");
  });
}

// Whether the name is that of a tensor in the chosen layers and modules.
bool is_chosen(const FrozenWeights& frozen, std::int64_t layers, std::string_view name) {
  if (has_module(name, frozen.extra_modules)) return true;
  constexpr std::string_view kLayers = "layers.";
  const std::size_t at = name.find(kLayers);
  if (at == std::string_view::npos) return false;
  std::string_view rest = name.substr(at + kLayers.size());
  const std::int64_t layer = parse_number<std::int64_t>(cut_off(rest, ".")).value_or(0);
  const bool is_in = frozen.layers > 0 ? layer >= layers - frozen.layers : layer < -frozen.layers;
  const bool all =
      std::find(frozen.modules.begin(), frozen.modules.end(), "all") != frozen.modules.end();
  return is_in && (all || has_module(name, frozen.modules));
}

}  // namespace

FrozenWeights read_frozen_weights(FlatReader& in) {
  FrozenWeights frozen;
  frozen.patterns = in.list(kPatternKey);
  const auto of_factory = in.text("finetuning_type");
  if (!of_factory) return frozen;
  const std::string kind = in_lower_case(*of_factory);
  // The key remains, since it marks files of LLaMA-Factory.
  in.left().push_back({"finetuning_type", kind == "freeze" ? "full" : *of_factory});
  if (kind != "freeze") return frozen;
  frozen.chooses_layers = true;
  if (const auto layers = in.text("freeze_trainable_layers")) {
    const auto number = parse_number<std::int64_t>(*layers);
    if (!number) {
      in.fail(fmt::format("freeze_trainable_layers is '{}'; it must be a whole number", *layers));
    }
    frozen.layers = number.value_or(frozen.layers);
  }
  frozen.modules = in.list("freeze_trainable_modules");
  if (frozen.modules.empty()) frozen.modules = {"all"};
  frozen.extra_modules = in.list("freeze_extra_modules");
  if (in.flag("use_llama_pro", false)) {
    in.fail("use_llama_pro trains added layers, which are not modelled",
            "state the last layers: freeze_trainable_layers");
  }
  return frozen;
}

Status freeze_weights(const FrozenWeights& frozen, ImportedPlan& result) {
  ModelSpec& model = result.model;
  if (model.layers == 0) return Ok{};
  if (frozen.chooses_layers) {
    return train_named_weights(model, result.parts,
                               {"finetuning_type: freeze", [&](std::string_view name) {
                                  return is_chosen(frozen, model.layers, name);
                                }});
  }
  if (frozen.patterns.empty()) return Ok{};
  std::vector<std::regex> patterns;
  for (const std::string& pattern : frozen.patterns) {
    TPSIM_TRY(std::regex one, regex_of(pattern));
    patterns.push_back(std::move(one));
  }
  const auto is_trained = [&](std::string_view name) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::regex& pattern) {
      return std::regex_search(name.begin(), name.end(), pattern,
                               std::regex_constants::match_continuous);
    });
  };
  TPSIM_TRY_STATUS(train_named_weights(model, result.parts, {kPatternKey, is_trained}));
  if (!result.parts.contains(StackPart::kFinetune)) {
    result.notes.push_back(fmt::format(
        "{}: all weights of the language model are trained; frozen encoders are not predicted",
        kPatternKey));
  }
  return Ok{};
}

}  // namespace tpsim

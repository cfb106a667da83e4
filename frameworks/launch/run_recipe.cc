// Imports Python recipes and training scripts. tpsim_recipes runs the file and prints the resulting
// configuration, which is then imported.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "formats/python_runner.h"
#include "formats/shell_script.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/megatron_options.h"
#include "frameworks/launch/nemo_settings.h"

namespace tpsim {
namespace {

constexpr std::string_view kMeta = "tpsim_recipe.";
constexpr const char* kFramework = "tpsim_recipe.framework";
constexpr std::string_view kFunction = "recipe";  // "--set recipe=NAME" selects the file's function
constexpr std::string_view kFrameworks = "megatron-bridge, nemo, torchtitan, olmo-core";

Error asks_to_run(const LaunchFile& file) {
  return bad_input("is a Python program: tpsim must run it to read its configuration",
                   path_of(file),
                   "add --run, and --checkout DIR for each framework that the program imports. "
                   "tpsim then runs it with python3 and replaces modules that are not installed "
                   "by stubs. On Linux it runs without network and cannot write to files");
}

// Returns the arguments of the script as a JSON list; null if there are none.
std::string script_words(const ImportInputs& inputs, const std::vector<std::string>* given) {
  std::vector<std::string> all;
  const auto stated = inputs.given.find(std::string(kArguments));
  if (given != nullptr) {
    all = *given;
  } else if (stated != inputs.given.end()) {
    all = words_in(stated->second);
  } else {
    return "null";
  }
  return to_line(json_array(all, [](const std::string& word) { return JsonValue(word); }));
}

std::vector<std::string> words_of(const LaunchFile& file, const ImportInputs& inputs,
                                  const std::string& script, const std::string& facts) {
  std::vector<std::string> words = checkout_words(inputs.checkouts);
  words.insert(words.end(),
               {"--gpu", inputs.gpu, "recipe", path_of(file), "--facts", facts, "--words", script});
  if (inputs.gpus > 0) words.insert(words.end(), {"--gpus", std::to_string(inputs.gpus)});
  for (const auto& [name, value] : inputs.given) {
    if (name == kFunction) words.insert(words.end(), {"--function", value});
  }
  for (const auto& [name, value] : inputs.given) {
    if (name != kFunction && name != kArguments && !names_setting(name)) {
      words.insert(words.end(), {"--set", fmt::format("{}={}", name, value)});
    }
  }
  return words;
}

Error error_in(const JsonValue& answer, const LaunchFile& file) {
  std::string message = text_of_answer(answer, "error");
  std::string hint = text_of_answer(answer, "hint");
  const JsonValue* const choices = answer.find("choices");
  if (choices != nullptr && !choices->as<JsonValue::Array>()->empty()) {
    std::vector<std::string> names;
    for (const JsonValue& name : *choices->as<JsonValue::Array>()) {
      names.push_back(*name.as<std::string>());
    }
    message += fmt::format(" {}", fmt::join(names, ", "));
    hint = fmt::format("add --set {}=NAME", kFunction);
  }
  return bad_input(std::move(message), path_of(file), std::move(hint));
}

// Returns the fields of Megatron's configuration that describe the model, as JSON.
Result<JsonValue> facts_of(const ModelSpec& model) {
  LaunchOptions options;
  add_megatron_model(model, options);
  TPSIM_TRY(const std::vector<FlatSetting> settings, flat_yaml(nemo_yaml(options), ""));
  JsonValue facts = json_object({{"_name", model.name}});
  constexpr std::string_view kModel = "model.";
  for (const FlatSetting& one : settings) {
    if (one.key.starts_with(kModel)) facts.set(one.key.substr(kModel.size()), json_of(one.value));
  }
  return facts;
}

// Returns the Hugging Face models that the recipe loads, by name, with the attributes that the
// recipe reads. Null if tpsim_recipes did not print any.
const JsonValue* models_of(const JsonValue& answer) {
  const JsonValue* const meta = answer.find("tpsim_recipe");
  return meta == nullptr ? nullptr : meta->find("models");
}

// Returns the shapes of the models whose attributes the recipe reads, as one line of JSON. The
// values come from the catalogue or from --model. Empty if no model is known.
Result<std::string> wanted_facts(const JsonValue& answer, const ImportInputs& inputs) {
  const JsonValue* const models = models_of(answer);
  if (models == nullptr) return std::string();
  JsonValue facts = json_object({});
  bool is_known = false;
  for (const JsonMember& asked : *models->as<JsonValue::Object>()) {
    const std::string& name = asked.key;
    if (asked.value.as<JsonValue::Array>()->empty()) continue;
    std::optional<ModelSpec> model = inputs.model;
    if (!model && inputs.load) {
      auto named = inputs.load(name);
      if (named.ok()) model = *std::move(named);
    }
    if (!model) continue;
    TPSIM_TRY(JsonValue own, facts_of(*model));
    facts.set(name, std::move(own));
    is_known = true;
  }
  return is_known ? to_line(facts) : std::string();
}

// Adds the names of the Hugging Face models that the recipe loads to the error.
Error with_unknown_models(Error error, const JsonValue& answer) {
  const JsonValue* const models = models_of(answer);
  if (models == nullptr || models->as<JsonValue::Object>()->empty()) return error;
  std::vector<std::string> names;
  for (const JsonMember& asked : *models->as<JsonValue::Object>()) names.push_back(asked.key);
  error.message +=
      fmt::format("; the recipe loads {} from the Hugging Face hub", fmt::join(names, ", "));
  error.hint = std::string(kModelAnswer);
  return error;
}

}  // namespace

JsonValue json_of(const std::string& text) {
  if (text == "true" || text == "false") return JsonValue(text == "true");
  Result<JsonValue> number = parse_json(text, "");
  return number.ok() ? *std::move(number) : JsonValue(text);
}

bool ResolvedRecipe::is_default(std::string_view key) const {
  return std::binary_search(defaults.begin(), defaults.end(), key);
}

bool is_resolved_recipe(const std::vector<FlatSetting>& settings) {
  return has_key(settings, kFramework);
}

ResolvedRecipe resolved_recipe(const std::vector<FlatSetting>& settings) {
  ResolvedRecipe recipe;
  for (const FlatSetting& one : settings) {
    const std::string_view key = one.key;
    if (key == kFramework) recipe.framework = one.value;
    if (key == "tpsim_recipe.function") recipe.function = one.value;
    if (key == "tpsim_recipe.gpus") {
      recipe.gpus = parse_number<std::int64_t>(one.value).value_or(0);
    }
    if (key.starts_with("tpsim_recipe.defaults.")) recipe.defaults.push_back(one.value);
    if (!key.starts_with(kMeta)) recipe.settings.push_back({one.key, one.value, 0});
  }
  std::sort(recipe.defaults.begin(), recipe.defaults.end());
  return recipe;
}

Result<ImportedPlan> import_resolved(ResolvedRecipe recipe, const LaunchFile& file,
                                     const ImportInputs& inputs) {
  std::map<std::string, std::string> said = inputs.given;
  std::erase_if(said, [](const auto& one) { return !names_setting(one.first); });
  recipe.settings = with_values(std::move(recipe.settings), said);
  if (recipe.framework == "megatron-bridge") {
    return located(file, import_bridge_recipe(std::move(recipe), file, inputs));
  }
  if (recipe.framework == "nemo") {
    return located(file, import_bridge_recipe(with_bridge_names(std::move(recipe)), file, inputs));
  }
  if (recipe.framework == "torchtitan") {
    return located(file, import_torchtitan_recipe(recipe, inputs));
  }
  if (recipe.framework == "olmo-core") {
    return located(file, import_olmo_recipe(recipe, file, inputs));
  }
  return bad_input(fmt::format("tpsim cannot read configurations of {} yet",
                               recipe.framework.empty() ? "this framework" : recipe.framework),
                   path_of(file), fmt::format("tpsim can read: {}", kFrameworks));
}

Result<ImportedPlan> import_recipe(const LaunchFile& file, const ImportInputs& inputs,
                                   const std::vector<std::string>* words) {
  if (!inputs.runs_code) return asks_to_run(file);
  const std::string script = script_words(inputs, words);
  TPSIM_TRY(std::string text,
            located(file, output_of_recipes(words_of(file, inputs, script, "{}"))));
  TPSIM_TRY(JsonValue answer, parse_json(text, path_of(file)));
  TPSIM_TRY(const std::string facts, wanted_facts(answer, inputs));
  if (!facts.empty()) {
    TPSIM_TRY(text, located(file, output_of_recipes(words_of(file, inputs, script, facts))));
    TPSIM_TRY(answer, parse_json(text, path_of(file)));
  }
  if (answer.find("error") != nullptr) {
    return with_unknown_models(error_in(answer, file), answer);
  }
  TPSIM_TRY(const std::vector<FlatSetting> settings, flat_yaml(text, path_of(file)));
  TPSIM_TRY(ImportedPlan plan, import_resolved(resolved_recipe(settings), file, inputs));
  const std::string why_not = text_of_answer(*answer.find("tpsim_recipe"), "not_isolated");
  if (!why_not.empty()) {
    plan.notes.push_back(
        fmt::format("the file ran without isolation from this machine ({})", why_not));
  }
  return plan;
}

}  // namespace tpsim

// Configuration files of training programs without a launch script.
//
// Formats: torchtitan's TOML, nanotron's YAML, YAML of Megatron's and NeMo's arguments, and Hugging
// Face's Trainer. The Trainer is configured by its own arguments, accelerate, axolotl and
// DeepSpeed's JSON. Recipes in Python are read too.
#pragma once

#include <optional>
#include <span>

#include "formats/settings_text.h"
#include "frameworks/launch/launch_files.h"
#include "frameworks/launch/left_settings.h"

namespace tpsim {

enum class ConfigFormat { kTorchTitan, kNanotron, kMegatron, kNemo, kTrainer };

// Detects the format by keys that only one format has.
std::optional<ConfigFormat> config_format(const std::vector<FlatSetting>& settings);

// Imports a file of any of these formats. Settings that do not affect a plan are listed in
// ImportedPlan::outside. An unknown setting is an error, and so is one that tpsim cannot express.
Result<ImportedPlan> import_config(const LaunchFile& file, const ImportInputs& inputs);

// Imports settings that are already parsed, such as those of a command line.
Result<ImportedPlan> import_settings(const std::vector<FlatSetting>& settings,
                                     const LaunchFile& file, const ImportInputs& inputs);

// Renames Megatron-Bridge's "model_config.x" and "ConfigContainer.model.x" to today's "model.x".
std::vector<FlatSetting> with_todays_sections(std::vector<FlatSetting> settings);

// Whether the settings describe the model's architecture, in Megatron's names.
bool states_model(const std::vector<FlatSetting>& settings);

// Imports a recipe or training script in Python, run by python/tpsim_recipes.
Result<ImportedPlan> import_recipe(const LaunchFile& file, const ImportInputs& inputs);

// The configuration that a recipe creates, as printed by tpsim_recipes.
struct ResolvedRecipe {
  std::string framework;  // "megatron-bridge", "nemo", "torchtitan", "olmo-core"
  std::string function;   // the file's function that created it; empty: the file ran as a script
  std::vector<FlatSetting> settings;
  std::vector<std::string> defaults;  // keys of settings with the default of the framework's class

  bool is_default(std::string_view key) const;
};
// Whether the settings were printed by tpsim_recipes.
bool is_resolved_recipe(const std::vector<FlatSetting>& settings);
ResolvedRecipe resolved_recipe(const std::vector<FlatSetting>& settings);
Result<ImportedPlan> import_resolved(ResolvedRecipe recipe, const LaunchFile& file,
                                     const ImportInputs& inputs);
Result<ImportedPlan> import_bridge_recipe(ResolvedRecipe recipe, const LaunchFile& file,
                                          const ImportInputs& inputs);
// Renames NeMo's settings to Megatron-Bridge's.
ResolvedRecipe with_bridge_names(ResolvedRecipe nemo);
Result<ImportedPlan> import_torchtitan_recipe(const ResolvedRecipe& recipe,
                                              const ImportInputs& inputs);

// Readers of the single formats. Unknown settings with the default of the recipe's class are listed
// as outside.
Result<ImportedPlan> import_megatron_yaml(const std::vector<FlatSetting>& settings,
                                          const ImportInputs& inputs,
                                          const ResolvedRecipe* recipe = nullptr);
Result<ImportedPlan> import_nanotron(FlatReader in, const LaunchFile& file,
                                     const ImportInputs& inputs);
Result<ImportedPlan> import_torchtitan(const std::vector<FlatSetting>& written,
                                       const ImportInputs& inputs);
Result<ImportedPlan> import_trainer(FlatReader in, const LaunchFile& file,
                                    const ImportInputs& inputs);
// Returns the text of a file that another file names. Searches `inputs.more`, the folder of the
// naming file, and a few folders above. Nothing if it is not found.
std::optional<std::string> text_of_named(const std::string& name, const ImportInputs& inputs);
Error not_there(const std::string& name, const std::string& by, const std::string& otherwise = "");

// Reason for refusing adapters.
inline constexpr const char* kAllWeights = "tpsim plans the training of all weights";
// Reason for refusing other optimizers.
inline constexpr const char* kAdamState = "tpsim's plans keep AdamW's state in fp32";

// A value that the file lacks and an import option supplies. All open questions are reported in one
// error.
struct OpenQuestion {
  std::string what;
  std::string answer;  // "--gpus N"
};
inline constexpr const char* kModelAnswer = "--model NAME or its config.json";
inline const OpenQuestion kHowManyGpus = {"the file does not say on how many GPUs it runs",
                                          "--gpus N"};
class OpenQuestions {
 public:
  void ask(OpenQuestion question) { all_.push_back(std::move(question)); }
  Status status() const;

 private:
  std::vector<OpenQuestion> all_;
};

// Rule for settings that remain in a reader: ignored, or refused with a reason. Settings without a
// rule are unknown.
struct LeftOver {
  std::string_view patterns;       // keys, or prefixes that end in '*', separated by spaces
  const char* why = nullptr;       // reason for refusal; null: does not affect a plan
  std::string_view harmless = {};  // values that are accepted nevertheless
};
// Adds the name of a setting that does not affect a plan, once. A list element adds the name of the
// list.
void add_outside(std::string_view name, std::vector<std::string>& outside);
// Returns the list of an element: "datasets" for "datasets.0.path". Otherwise the name itself.
std::string_view list_of(std::string_view name);
// Whether the patterns match the setting, or its list.
bool has_pattern(std::string_view name, std::string_view patterns);
bool is_harmless(const LeftOver& row, std::string_view value);
// Removes settings that `rows` refuse from `in`. Must run before other errors can occur.
void refuse_first(FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows,
                  LeftSettings& left);
// Adds names of settings that do not affect a plan to `outside`. Returns the reader's first error.
Status settle_left(FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows,
                   std::vector<std::string>& outside, LeftSettings& left);

}  // namespace tpsim

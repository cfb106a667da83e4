// Configuration files of training programs that have no launch script: torchtitan's TOML,
// nanotron's YAML, Megatron's and NeMo's YAML of arguments, and what Hugging Face's Trainer is told
// by accelerate, by its own arguments, by axolotl and by DeepSpeed's JSON; and recipes in Python.
#pragma once

#include <optional>
#include <span>

#include "formats/settings_text.h"
#include "frameworks/launch/launch_files.h"
#include "frameworks/launch/left_settings.h"

namespace tpsim {

enum class ConfigFormat { kTorchTitan, kNanotron, kMegatron, kNemo, kTrainer };

// By the keys that only one of them has.
std::optional<ConfigFormat> config_format(const std::vector<FlatSetting>& settings);

// Of the format that the file's keys tell. What changes no plan is set aside by name; an unknown
// setting is an error, and so is one that makes a plan which tpsim cannot express.
Result<ImportedPlan> import_config(const LaunchFile& file, const ImportInputs& inputs);

// Of settings that are known already: a command line's, say.
Result<ImportedPlan> import_settings(const std::vector<FlatSetting>& settings,
                                     const LaunchFile& file, const ImportInputs& inputs);

// Megatron-Bridge's "model_config.x" and "ConfigContainer.model.x" are "model.x" today.
std::vector<FlatSetting> with_todays_sections(std::vector<FlatSetting> settings);

// Whether settings of Megatron's say which model it is, layer by layer.
bool states_model(const std::vector<FlatSetting>& settings);

// A recipe or training script in Python, run by python/tpsim_recipes.
Result<ImportedPlan> import_recipe(const LaunchFile& file, const ImportInputs& inputs);

// The configuration that a recipe makes, as tpsim_recipes prints it.
struct ResolvedRecipe {
  std::string framework;  // "megatron-bridge", "nemo", "torchtitan", "olmo-core"
  std::string function;   // of the file, that made it; empty: the file ran as a script
  std::vector<FlatSetting> settings;
  std::vector<std::string> defaults;  // keys of settings with the default of the framework's class

  bool is_default(std::string_view key) const;
};
// Whether the file is such a configuration.
bool is_resolved_recipe(const std::vector<FlatSetting>& settings);
ResolvedRecipe resolved_recipe(const std::vector<FlatSetting>& settings);
Result<ImportedPlan> import_resolved(ResolvedRecipe recipe, const LaunchFile& file,
                                     const ImportInputs& inputs);
Result<ImportedPlan> import_bridge_recipe(ResolvedRecipe recipe, const LaunchFile& file,
                                          const ImportInputs& inputs);
// In the names of Megatron-Bridge.
ResolvedRecipe with_bridge_names(ResolvedRecipe nemo);
Result<ImportedPlan> import_torchtitan_recipe(const ResolvedRecipe& recipe,
                                              const ImportInputs& inputs);

// The pieces of it.
// Keys of unknown settings that have their class's default are left out by name.
Result<ImportedPlan> import_megatron_yaml(const std::vector<FlatSetting>& settings,
                                          const ImportInputs& inputs,
                                          const ResolvedRecipe* recipe = nullptr);
Result<ImportedPlan> import_nanotron(FlatReader in, const LaunchFile& file,
                                     const ImportInputs& inputs);
Result<ImportedPlan> import_torchtitan(const std::vector<FlatSetting>& written,
                                       const ImportInputs& inputs);
Result<ImportedPlan> import_trainer(FlatReader in, const LaunchFile& file,
                                    const ImportInputs& inputs);
// As its owner called it, from the folder of what names it, or from a few folders above; nothing
// where it is not there.
std::optional<std::string> text_of_named(const std::string& name, const ImportInputs& inputs);
Error not_there(const std::string& name, const std::string& by, const std::string& otherwise = "");

// Why adapters are refused.
inline constexpr const char* kAllWeights = "tpsim plans the training of all weights";
// Why another optimizer is refused.
inline constexpr const char* kAdamState = "tpsim's plans keep AdamW's state in fp32";

// What a file leaves open and an option of the import says. All of it is asked for at once.
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

// What is left in `in` is set aside, refused, or unknown.
struct LeftOver {
  std::string_view patterns;       // keys, or beginnings of keys that end in '*', between spaces
  const char* why = nullptr;       // null: no part of a plan
  std::string_view harmless = {};  // values that it may have all the same
};
// Adds the name of a setting that does not belong to a plan, once. A list element adds the list's
// name.
void add_outside(std::string_view name, std::vector<std::string>& outside);
// "datasets" of "datasets.0.path": the list that an element belongs to; else the name itself.
std::string_view list_of(std::string_view name);
// Whether the patterns have the setting, or the list that it belongs to.
bool has_pattern(std::string_view name, std::string_view patterns);
bool is_harmless(const LeftOver& row, std::string_view value);
// Takes out of `in` what `rows` refuse, before anything else is asked for.
void refuse_first(FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows,
                  LeftSettings& left);
// `outside` gets the names of what changes no plan. Returns the reader's first error.
Status settle_left(FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows,
                   std::vector<std::string>& outside, LeftSettings& left);

}  // namespace tpsim

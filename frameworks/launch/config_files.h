// Imports configuration files of training programs, without a launch script.
//
// Supported are torchtitan's TOML, nanotron's YAML, Megatron's and NeMo's arguments as YAML,
// recipes in Python, and Hugging Face's Trainer. The Trainer's settings may be in its own
// arguments, or in files of accelerate, axolotl or DeepSpeed.
#pragma once

#include <optional>
#include <span>

#include "core/json/json_value.h"
#include "core/software/optimizer_kinds.h"
#include "formats/settings_text.h"
#include "frameworks/launch/launch_files.h"
#include "frameworks/launch/left_settings.h"
#include "frameworks/launch/outside_settings.h"

namespace tpsim {

// Whether a key of the settings starts with `prefix`.
bool has_prefix(const std::vector<FlatSetting>& settings, std::string_view prefix);
// Whether the settings have the "train" section of Megatron-Bridge.
bool is_of_bridge(const std::vector<FlatSetting>& settings);

// Whether a command in the text may start a training on several ranks.
bool may_start_training(std::string_view text);

// Converts the text of a value in YAML to JSON: a flag, a number, a list or a text.
JsonValue json_of(const std::string& text);

// Imports a configuration file of any framework, or the command in a file of a scheduler. Settings
// that do not affect a plan are listed in ImportedPlan::outside. Unknown settings and settings that
// tpsim cannot express are errors.
Result<ImportedPlan> import_config(const LaunchFile& file, const ImportInputs& inputs);

// Imports settings that are already parsed, such as those of a command line.
Result<ImportedPlan> import_settings(const std::vector<FlatSetting>& settings,
                                     const LaunchFile& file, const ImportInputs& inputs);

// Renames sections of older Megatron-Bridge versions: "model_config.x" and
// "ConfigContainer.model.x" become "model.x".
std::vector<FlatSetting> with_todays_sections(std::vector<FlatSetting> settings);

// Whether the settings state the model's layers, hidden size and heads, under Megatron's names.
bool states_model(const std::vector<FlatSetting>& settings);

// Imports a recipe or training script in Python, which python/tpsim_recipes runs. `words` are the
// arguments of the script; null: those of --set '@=WORDS', or none.
Result<ImportedPlan> import_recipe(const LaunchFile& file, const ImportInputs& inputs,
                                   const std::vector<std::string>* words = nullptr);

// The configuration that a Python recipe creates, as tpsim_recipes prints it.
struct ResolvedRecipe {
  std::string framework;  // "megatron-bridge", "nemo", "torchtitan", "olmo-core"
  std::string function;   // function that created it; empty: the file ran as a script
  std::vector<FlatSetting> settings;
  std::vector<std::string> defaults;  // sorted keys of settings that have their class's default
  std::int64_t gpus = 0;              // that a script requests from a scheduler; 0: none

  bool is_default(std::string_view key) const;
};
// Whether tpsim_recipes printed the settings.
bool is_resolved_recipe(const std::vector<FlatSetting>& settings);
ResolvedRecipe resolved_recipe(const std::vector<FlatSetting>& settings);
Result<ImportedPlan> import_resolved(ResolvedRecipe recipe, const LaunchFile& file,
                                     const ImportInputs& inputs);
Result<ImportedPlan> import_bridge_recipe(ResolvedRecipe recipe, const LaunchFile& file,
                                          const ImportInputs& inputs);
// Renames NeMo 2's settings to those of Megatron-Bridge.
ResolvedRecipe with_bridge_names(ResolvedRecipe nemo);
Result<ImportedPlan> import_torchtitan_recipe(const ResolvedRecipe& recipe,
                                              const ImportInputs& inputs);
Result<ImportedPlan> import_olmo_recipe(const ResolvedRecipe& recipe, const LaunchFile& file,
                                        const ImportInputs& inputs);

// Readers of each format. If `recipe` is given, unknown settings that have the default of their
// class are listed as ignored.
Result<ImportedPlan> import_megatron_yaml(const std::vector<FlatSetting>& settings,
                                          const ImportInputs& inputs,
                                          const ResolvedRecipe* recipe = nullptr);
Result<ImportedPlan> import_nanotron(FlatReader in, const LaunchFile& file,
                                     const ImportInputs& inputs);
Result<ImportedPlan> import_torchtitan(const std::vector<FlatSetting>& written,
                                       const ImportInputs& inputs);
Result<ImportedPlan> import_trainer(FlatReader in, const LaunchFile& file,
                                    const ImportInputs& inputs);
// Returns the text of a file that another file refers to. Searches `inputs.more`, the folder of the
// referring file, and a few parent folders. Nothing if the file is not found.
std::optional<std::string> text_of_named(const std::string& name, const ImportInputs& inputs);
Error not_there(const std::string& name, const std::string& by, const std::string& otherwise = "");
// Returns the settings of a file that the file `by` refers to; an error if it is not found.
Result<std::vector<FlatSetting>> named_settings(const std::string& name, const std::string& by,
                                                const ImportInputs& inputs,
                                                const std::string& otherwise = "");
// Puts the settings of the file `path` (empty: the imported file) over those of the YAML files that
// its settings with the keys `keys` name, relative to its folder, and of the files that these name
// in turn. Settings of other files have the line 0. A file that is not found is an error if
// `is_needed`, and else left out.
Status put_over_bases(std::string_view keys, bool is_needed, const std::string& path,
                      const ImportInputs& inputs, std::vector<FlatSetting>& settings,
                      int depth = 0);

// A value that the file does not state and that an import option can supply. All open questions are
// reported in one error.
struct OpenQuestion {
  std::string what;
  std::string answer;  // "--gpus N"
};
inline constexpr const char* kModelAnswer = "--model NAME or its config.json";
inline const OpenQuestion kHowManyGpus = {"the file does not state how many GPUs it runs on",
                                          "--gpus N"};
class OpenQuestions {
 public:
  void ask(OpenQuestion question);  // once, if it repeats
  Status status() const;

 private:
  std::vector<OpenQuestion> all_;
};

// Removes the settings that `rows` refuse from `in` and adds them to `left`. Must run before the
// reader can report other errors.
void refuse_first(FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows,
                  LeftSettings& left);
// Handles the settings that no reader has read: adds ignored ones to `outside`, and refused and
// unknown ones to `left`. Returns the first error of `in`.
Status settle_left(FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows,
                   std::vector<std::string>& outside, LeftSettings& left);

}  // namespace tpsim

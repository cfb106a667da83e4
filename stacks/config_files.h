// Configuration files of training programs that have no launch script: torchtitan's TOML,
// nanotron's YAML, Megatron's and NeMo's YAML of arguments, and what Hugging Face's Trainer is told
// by accelerate, by its own arguments, by axolotl and by DeepSpeed's JSON.
#pragma once

#include <optional>
#include <span>

#include "stacks/launch_files.h"
#include "stacks/settings_text.h"

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

// The pieces of it.
Result<ImportedPlan> import_megatron_yaml(const std::vector<FlatSetting>& settings,
                                          const ImportInputs& inputs);
Result<ImportedPlan> import_nanotron(FlatReader in, const LaunchFile& file);
Result<ImportedPlan> import_trainer(FlatReader in, const LaunchFile& file,
                                    const ImportInputs& inputs);
// What is left in `in` is set aside, refused, or unknown.
struct LeftOver {
  std::string_view patterns;       // keys, or beginnings of keys that end in '*', between spaces
  const char* why = nullptr;       // null: no part of a plan
  std::string_view harmless = {};  // the value that it may have all the same
};
// An error for the first setting that makes another plan, before anything else is asked for.
Status refuse_first(const FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows);
Status settle_left(FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows,
                   std::vector<std::string>& outside);

}  // namespace tpsim

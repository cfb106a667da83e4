// Imports settings of Megatron-Bridge or NeMo: NemoRun is the state of such an import.
#pragma once

#include <string_view>
#include <vector>

#include "formats/settings_text.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

// Whether the settings have this key with the value true.
inline bool is_on(const std::vector<FlatSetting>& settings, std::string_view key) {
  return setting_value(settings, key) == "true";
}

struct NemoRun {
  LaunchFile file;
  std::vector<FlatSetting> settings;
  LaunchCommand command = {};  // from the launch script; the settings replace its options
  bool is_whole = false;       // false: a recipe that is not available has further settings
};

// Converts the settings to a plan. `result` contains the model, the stack and the notes collected
// before.
Result<ImportedPlan> plan_of_run(NemoRun run, const ImportInputs& inputs, ImportedPlan result);

// Returns an error unless the recipe's model class is a decoder-only transformer or a hybrid.
Status check_decoder(const std::vector<FlatSetting>& settings);
// Returns the letters that state the layers of a hybrid model; empty for other models.
std::string hybrid_pattern(const std::vector<FlatSetting>& settings);
// Returns the hybrid model that the settings describe, under Megatron-Bridge's names. Error if
// tpsim does not model a layer type, the activation or the prediction layers.
Result<ModelSpec> hybrid_model(const std::vector<FlatSetting>& settings, std::int64_t vocab);
// Returns the vocab size that the recipe or --set states, otherwise that of the recipe's tokenizer.
// `source` is set to the tokenizer. Returns 0 if neither is known.
std::int64_t vocab_of_tokenizer(const std::vector<FlatSetting>& settings,
                                const ImportInputs& inputs, std::string& source);

}  // namespace tpsim

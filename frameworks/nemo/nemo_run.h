// Settings of one run of Megatron-Bridge or NeMo, during an import.
#pragma once

#include <vector>

#include "formats/settings_text.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

struct NemoRun {
  LaunchFile file;
  std::vector<FlatSetting> settings;
  LaunchCommand command = {};  // from the launcher; its options are replaced by the settings
  bool is_whole = false;       // false: a recipe, which is not available, has further settings
};

// `result` has the model, the stack and the notes so far.
Result<ImportedPlan> plan_of_run(NemoRun run, const ImportInputs& inputs, ImportedPlan result);

// Error if the recipe's class of models is not a decoder-only transformer or hybrid.
Status check_decoder(const std::vector<FlatSetting>& settings);
// The letters by which a recipe states the layers of a hybrid model; empty for other models.
std::string hybrid_pattern(const std::vector<FlatSetting>& settings);
// The hybrid model of a recipe, in the names of Megatron-Bridge. Error if a layer, the activation
// or the prediction layers are not modelled.
Result<ModelSpec> hybrid_model(const std::vector<FlatSetting>& settings, std::int64_t vocab);
// The vocab size that the recipe or --set states, or that of the tokenizer that it takes, which
// `source` then names. 0 if neither is known.
std::int64_t vocab_of_tokenizer(const std::vector<FlatSetting>& settings,
                                const ImportInputs& inputs, std::string& source);

}  // namespace tpsim

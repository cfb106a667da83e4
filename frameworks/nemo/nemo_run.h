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

}  // namespace tpsim

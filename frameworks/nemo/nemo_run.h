// The settings of one run of Megatron-Bridge or NeMo, on their way to a plan.
#pragma once

#include <vector>

#include "formats/settings_text.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

struct NemoRun {
  LaunchFile file;
  std::vector<FlatSetting> settings;
  LaunchCommand command = {};  // of what launches it; options are the settings'
  bool is_whole = false;       // nothing is left to a recipe that is not here
};

// `result` has the model, the stack and the notes so far.
Result<ImportedPlan> plan_of_run(NemoRun run, const ImportInputs& inputs, ImportedPlan result);

}  // namespace tpsim

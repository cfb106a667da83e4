// Weights that axolotl's unfrozen_parameters and LLaMA-Factory's finetuning_type: freeze train, and
// layers with adapters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/settings_text.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

struct FrozenWeights {
  std::vector<std::string> patterns;  // of axolotl
  bool chooses_layers = false;        // of LLaMA-Factory
  std::int64_t layers = 2;            // the last layers; if negative, the first ones
  std::vector<std::string> modules, extra_modules;
};

// Reads and removes the settings.
FrozenWeights read_frozen_weights(FlatReader& in);
// Sets the trained weights of the plan's model.
Status freeze_weights(const FrozenWeights& frozen, ImportedPlan& result);

}  // namespace tpsim

// Reads the settings of low-rank adapters: peft's names in TRL's and axolotl's files, and
// LLaMA-Factory's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/settings_text.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

// Returns the bits of WeightPart of linear modules, such as "q_proj" or "all-linear", with the
// names of common models; nothing if a module is unknown.
std::optional<std::int64_t> targets_of_modules(const std::vector<std::string>& modules);

// Returns "lora", "qlora" or another word of the file's own; empty if it says that all weights are
// trained; nothing if it does not say. axolotl trains all weights unless an adapter is named, TRL
// unless use_peft is on. A rank without any switch means LoRA.
std::optional<std::string> kind_of_adapter(const FlatReader& in);

// Reads the adapters of a Trainer's file into the parts of the plan. Leaves settings that tpsim
// does not model, which the caller then refuses: DoRA, other adapters, unknown modules. Does
// nothing if the file has no adapter.
void read_adapters(FlatReader& in, ImportedPlan& result);

}  // namespace tpsim

// Imports configuration files by the program or framework whose keys they have.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/text.h"
#include "formats/shell_script.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/programs.h"
#include "frameworks/launch/shell_files.h"

namespace tpsim {
namespace {

// Returns the programs and frameworks whose configuration files are read.
std::string readable_programs() {
  std::vector<std::string> names = {"torchtitan", "nanotron",    "Megatron", "NeMo",
                                    "accelerate", "the Trainer", "axolotl",  "DeepSpeed"};
  for (const TrainingProgram& one : all_programs()) {
    const bool is_new = std::find(names.begin(), names.end(), one.name) == names.end();
    if (!one.file_keys.empty() && is_new) names.emplace_back(one.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Merges the settings of all files; a later file overrides earlier ones. For a DeepSpeed
// configuration, the setting "deepspeed" becomes its path.
Result<std::vector<FlatSetting>> settings_of(const LaunchFile& file, const ImportInputs& inputs) {
  TPSIM_TRY(std::vector<FlatSetting> settings, flat_settings(file));
  TPSIM_TRY_STATUS(put_over_bases("defaults", true, "", inputs, settings));
  for (const LaunchFile& more : inputs.more) {
    TPSIM_TRY(const std::vector<FlatSetting> others, flat_settings(more));
    if (has_key(others, "zero_optimization.stage")) {
      put_setting({"deepspeed", path_of(more), 0}, settings);
    } else {
      put_settings(others, settings);
    }
  }
  return with_values(with_todays_sections(std::move(settings)), inputs.given);
}

// Imports the command in a file of a scheduler.
Result<ImportedPlan> import_manifest(const LaunchFile& file, const ImportInputs& inputs) {
  return framework_of(LaunchStack::kKubernetes)
      .read({{kJobSetFile, file.text, path_of(file)}}, inputs);
}

}  // namespace

Result<ImportedPlan> import_config(const LaunchFile& file, const ImportInputs& inputs) {
  return with_settings_settled(
      path_of(file), inputs, [&](const ImportInputs& collecting) -> Result<ImportedPlan> {
        if (file.name.ends_with(".py")) return import_recipe(file, collecting);
        if (("\n" + file.text).find("\napiVersion:") != std::string::npos) {
          return import_manifest(file, collecting);
        }
        TPSIM_TRY(const std::vector<FlatSetting> settings, settings_of(file, collecting));
        return import_settings(settings, file, collecting);
      });
}

Result<ImportedPlan> import_settings(const std::vector<FlatSetting>& settings,
                                     const LaunchFile& file, const ImportInputs& inputs) {
  if (const TrainingProgram* program = program_of(settings)) {
    return import_program(*program, settings, nullptr, file, inputs);
  }
  if (is_resolved_recipe(settings)) {
    return import_resolved(resolved_recipe(settings), file, inputs);
  }
  const auto framework =
      std::find_if(frameworks().begin(), frameworks().end(),
                   [&](const Framework* one) { return one->detects_settings(settings); });
  if (framework == frameworks().end() && may_start_training(file.text)) {
    return import_manifest(file, inputs);
  }
  if (framework == frameworks().end()) {
    return bad_input("is not a configuration of a known training program", path_of(file),
                     fmt::format("tpsim reads files of {}, and commands in files of Kubernetes",
                                 readable_programs()));
  }
  if (has_prefix(settings, "perf_matrix.")) {
    return bad_input("contains a matrix of many plans (perf_matrix)", path_of(file),
                     "write one plan as overrides instead: model.tensor_model_parallel_size, ..., "
                     "train.global_batch_size");
  }
  return (*framework)->read_settings(settings, file, inputs);
}

}  // namespace tpsim

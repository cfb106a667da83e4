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

// Adds the settings of the YAML that the setting "defaults" names, relative to the file's folder,
// and of the YAML that it names in turn. The file's own settings take precedence.
Status add_bases(const std::string& by, const std::string& folder, const ImportInputs& inputs,
                 std::vector<FlatSetting>& settings, int depth = 0) {
  constexpr int kMostBases = 16;
  const std::string named = setting_value(settings, "defaults");
  if (!named.ends_with(".yaml") || depth > kMostBases) return Ok{};
  std::erase_if(settings, [](const FlatSetting& one) { return one.key == "defaults"; });
  const std::string path = plain_path(folder + named);
  const auto text = text_of_named(path, inputs);
  if (!text) return not_there(path, by);
  TPSIM_TRY(std::vector<FlatSetting> base, flat_settings({path, *text, path}));
  TPSIM_TRY_STATUS(
      add_bases(path, path.substr(0, path.find_last_of('/') + 1), inputs, base, depth + 1));
  for (FlatSetting& one : base) one.line = 0;
  for (FlatSetting& one : settings) {
    std::erase_if(base, [&](const FlatSetting& other) {  // a value in place of a section
      return other.key.starts_with(one.key) && other.key[one.key.size()] == '.';
    });
    put_setting(std::move(one), base);
  }
  settings = std::move(base);
  return Ok{};
}

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
  TPSIM_TRY_STATUS(add_bases(path_of(file), "", inputs, settings));
  for (const LaunchFile& more : inputs.more) {
    TPSIM_TRY(const std::vector<FlatSetting> others, flat_settings(more));
    if (has_key(others, "zero_optimization.stage")) {
      std::erase_if(settings, [](const FlatSetting& one) { return one.key == "deepspeed"; });
      settings.push_back({"deepspeed", path_of(more), 0});
      continue;
    }
    for (const FlatSetting& one : others) {
      put_setting(one, settings);
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

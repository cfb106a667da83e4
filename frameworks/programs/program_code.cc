// Functions of programs whose files or models are more than rows and rules of a table.
#include "frameworks/programs/program_code.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/model/model_json.h"
#include "core/software/stack_parts.h"
#include "formats/unset_marks.h"
#include "frameworks/launch/environment_parts.h"
#include "frameworks/launch/nemo_settings.h"

namespace tpsim {
namespace {

// Adds the file train/NAME.yaml that the list of defaults selects.
Status add_selected(std::vector<FlatSetting>& settings, const LaunchFile& file,
                    const ImportInputs& inputs) {
  for (const FlatSetting& one : std::vector<FlatSetting>(settings)) {
    if (!one.key.starts_with("defaults.") || !one.key.ends_with(".train")) continue;
    TPSIM_TRY(const std::vector<FlatSetting> selected,
              named_settings(fmt::format("train/{}.yaml", one.value), path_of(file), inputs));
    settings.insert(settings.end(), selected.begin(), selected.end());
  }
  return Ok{};
}

}  // namespace

Result<std::vector<FlatSetting>> expand_flagscale(std::vector<FlatSetting> settings,
                                                  const LaunchFile& file,
                                                  const ImportInputs& inputs,
                                                  ProgramSettings& out) {
  constexpr std::string_view kVariables = "experiment.envs.";
  TPSIM_TRY_STATUS(add_selected(settings, file, inputs));
  PartValues parts;
  std::vector<FlatSetting> all = with_lists_joined(with_values(std::move(settings), inputs.given));
  for (FlatSetting& one : all) {
    if (one.key.starts_with(kVariables)) {
      read_variable(one.key.substr(kVariables.size()), one.value, parts);
    }
    for (const std::string_view section : {"system.", "model.", "data."}) {
      if (one.key.starts_with(section)) one.key.erase(0, one.key.rfind('.') + 1);
    }
  }
  for (const auto& [part, value] : parts) {
    out.put(fmt::format("@part.{}", row_of(part).key), text_of(row_of(part), value));
  }
  return all;
}

// Returns the settings with those of the configuration that a command names, as in "tune run
// --nproc_per_node 8 full_finetune_distributed --config llama3_1/8B_full".
Result<std::vector<FlatSetting>> expand_tune(std::vector<FlatSetting> settings,
                                             const LaunchFile& file, const ImportInputs& inputs,
                                             ProgramSettings&) {
  const FlatSetting* const named = find_setting(settings, "config");
  if (named == nullptr) return settings;
  const std::string name = without_marks(named->value);
  std::string found = name;
  for (const std::string& place :
       {name + ".yaml", "recipes/configs/" + name + ".yaml", "recipes/configs/" + name}) {
    if (!text_of_named(found, inputs)) found = place;
  }
  TPSIM_TRY(std::vector<FlatSetting> all,
            named_settings(
                text_of_named(found, inputs) ? found : name, path_of(file), inputs,
                fmt::format("; tune cp {0} {0}.yaml copies a configuration of torchtune", name)));
  drop_settings(settings, "config");
  put_settings(std::move(settings), all);
  return all;
}

void derive_titan(ProgramSettings& settings, LeftSettings&) {
  const std::string* const named = settings.find("@preset");
  const auto& presets = fact_block("torchtitan-presets").lists;
  const auto preset = std::find_if(presets.begin(), presets.end(), [&](const auto& one) {
    return named != nullptr && one.first == *named;
  });
  if (preset == presets.end()) {
    settings.error = bad_input(
        fmt::format("names the configuration {} of torchtitan's Python registry, which only --run "
                    "reads",
                    named == nullptr ? "" : *named),
        "", "add --run --checkout DIR with torchtitan's sources");
    return;
  }
  std::string batch;
  for (const std::string& stated : words_in(preset->second)) {
    const std::size_t equals = stated.find('=');
    const std::string key = stated.substr(0, equals);
    if (key == "training.local_batch_size") {
      batch = stated.substr(equals + 1);
    } else if (!settings.has(key)) {
      settings.put(key, stated.substr(equals + 1));
    }
  }
  const std::int64_t tokens = settings.number("@tokens", 0);
  const std::int64_t length = settings.number("training.seq_len", 1);
  if (tokens > 0) {
    settings.put("training.local_batch_size", std::max<std::int64_t>(1, tokens / length));
  }
  if (!settings.has("training.local_batch_size")) settings.put("training.local_batch_size", batch);
}

// Makes the model of the sizes in the arguments, as get_model_config() does.
Result<std::vector<FlatSetting>> expand_aws(std::vector<FlatSetting> settings,
                                            const LaunchFile& file, const ImportInputs&,
                                            ProgramSettings& out) {
  if (!setting_value(settings, "model_type").starts_with("llama_v")) return settings;
  TPSIM_TRY(out.model, model_by_rules("aws-model", settings, path_of(file)));
  return settings;
}

}  // namespace tpsim

// Hugging Face's Trainer as scripts start it: by accelerate, torchrun or deepspeed, with arguments
// of its own and the configurations that the command names.
#include <fmt/format.h>

#include <algorithm>

#include "stacks/config_files.h"
#include "stacks/launch_command.h"
#include "stacks/settings_text.h"
#include "stacks/shell_words.h"

namespace tpsim {
namespace {

// "--per-device-train-batch-size" is one of its arguments too.
std::string key_of(std::string_view option) {
  std::string key(option.substr(option.find_first_not_of('-')));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

// As its owner called it, from the folder of the script, or from a folder above: scripts are
// started from the top of their repository.
Result<std::string> opened(const std::string& name, const LaunchFile& by,
                           const ImportInputs& inputs) {
  for (const LaunchFile& more : inputs.more) {
    if (path_of(more) == name) return more.text;
  }
  constexpr int kAbove = 5;
  std::string place = name;
  for (int i = 0; inputs.open && i < kAbove; ++i) {
    auto text = inputs.open(place);
    if (text.ok()) return text;
    place.insert(0, "../");
  }
  return bad_input(fmt::format("names {}, which is not there", name), path_of(by),
                   "put it where the name leads from this file");
}

}  // namespace

bool is_trainer_command(const LaunchCommand& command) {
  if (!command.configs.empty()) return true;
  return has_option(command.options, "--per_device_train_batch_size") ||
         has_option(command.options, "--per-device-train-batch-size") ||
         has_option(command.options, "--model_name_or_path");
}

Result<ImportedPlan> import_trainer_command(const LaunchCommand& command, const LaunchFile& file,
                                            const ImportInputs& inputs) {
  std::vector<FlatSetting> settings;
  const auto put = [&](FlatSetting setting) {
    std::erase_if(settings, [&](const FlatSetting& one) { return one.key == setting.key; });
    settings.push_back(std::move(setting));
  };
  for (const std::string& marked : command.configs) {
    const std::string name = without_marks(marked);
    TPSIM_TRY(std::string text, opened(name, file, inputs));
    TPSIM_TRY(std::vector<FlatSetting> own, flat_settings({name, std::move(text)}));
    for (FlatSetting& one : own) put(std::move(one));
  }
  for (const LaunchOption& option : command.options) {
    const std::string key = key_of(option.name);
    if (key == "config") continue;
    put({key, option.value.empty() ? "true" : option.value, 0});
  }
  settings = with_values(std::move(settings), inputs.given);
  ImportInputs all = inputs;
  if (all.gpus == 0 && command.size.nodes > 0) {  // the command line goes first
    all.gpus = command.size.nodes * command.size.gpus_per_node;
  }
  all.open = [&](const std::string& name) { return opened(name, file, inputs); };
  return import_trainer(FlatReader(std::move(settings)), file, all);
}

}  // namespace tpsim

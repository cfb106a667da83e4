// Trainer as scripts start it: by accelerate, torchrun or deepspeed, with arguments of its own and
// the configurations that the command names.
#include <algorithm>

#include "formats/shell_words.h"
#include "frameworks/huggingface/trainer_keys.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {
namespace {

// "--per-device-train-batch-size" is one of its arguments too.
std::string key_of(std::string_view option) {
  std::string key(option.substr(option.find_first_not_of('-')));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

Result<std::string> opened(const std::string& name, const LaunchFile& by,
                           const ImportInputs& inputs) {
  auto text = text_of_named(name, inputs);
  if (!text) return not_there(name, path_of(by));
  return *std::move(text);
}

}  // namespace

bool is_trainer_command(const LaunchCommand& command) {
  return !command.configs.empty() ||
         has_any_option(command.options, {"--per_device_train_batch_size",
                                          "--per-device-train-batch-size", "--model_name_or_path"});
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

// Imports commands that start a Trainer with accelerate, torchrun or deepspeed, from their
// arguments and the configuration files that they name.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "formats/unset_marks.h"
#include "frameworks/huggingface/trainer_keys.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {
namespace {

// Returns the key of an option: "per_device_train_batch_size" for "--per-device-train-batch-size".
std::string key_of(std::string_view option) {
  std::string key(option.substr(option.find_first_not_of('-')));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

// Options of "accelerate launch" and the equivalent keys of its configuration file.
struct LauncherOption {
  std::string_view option;
  std::string_view key;
  std::string_view value = {};  // the new value; empty: unchanged
};
constexpr LauncherOption kAccelerateOptions[] = {
    {"mixed_precision", "mixed_precision"},
    {"use_fsdp", "distributed_type", "FSDP"},
    {"deepspeed_config_file", "deepspeed"},
    {"zero_stage", "deepspeed_config.zero_stage"},
    {"offload_optimizer_device", "deepspeed_config.offload_optimizer_device"},
    {"offload_param_device", "deepspeed_config.offload_param_device"},
    {"fsdp_offload_params", "fsdp_config.fsdp_offload_params"},
    {"fsdp_sharding_strategy", "fsdp_config.fsdp_sharding_strategy"},
    {"fsdp_reshard_after_forward", "fsdp_config.fsdp_reshard_after_forward"},
    {"fsdp_activation_checkpointing", "fsdp_config.fsdp_activation_checkpointing"},
    {"fsdp_version", "fsdp_config.fsdp_version"},
    {"gradient_accumulation_steps", "gradient_accumulation_steps"},
};

std::vector<FlatSetting> settings_of_launcher(const std::vector<std::string>& words) {
  std::vector<FlatSetting> settings;
  const bool is_accelerate = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.ends_with("accelerate") || word.starts_with("accelerate.");
  });
  for (std::size_t i = 0; is_accelerate && i < words.size(); ++i) {
    if (!words[i].starts_with("--")) continue;
    const std::size_t equals = words[i].find('=');
    const std::string name = key_of(words[i].substr(0, equals));
    for (const LauncherOption& row : kAccelerateOptions) {
      if (row.option != name) continue;
      const bool has_next = i + 1 < words.size() && !words[i + 1].starts_with("--");
      const std::string said = equals != std::string::npos ? words[i].substr(equals + 1)
                               : has_next                  ? words[i + 1]
                                                           : "true";
      settings.push_back({std::string(row.key),
                          row.value.empty() ? without_marks(said) : std::string(row.value), 0});
    }
  }
  return settings;
}

// Defaults of TRL that differ from the Trainer's. Source: trl/trainer/base_config.py and
// sft_config.py of huggingface/trl at f2cd577; transformers' training_args.py.
constexpr std::pair<const char*, const char*> kTrlDefaults[] = {
    {"gradient_checkpointing", "true"},
    {"bf16", "true"},
    {"max_length", "1024"},
    {"per_device_train_batch_size", "8"},
};

// Configurations that TRL includes, selected by "--accelerate_config zero3"
// (trl/accelerate_configs).
constexpr LauncherOption kTrlPresets[] = {
    {"zero1", "deepspeed_config.zero_stage", "1"}, {"zero2", "deepspeed_config.zero_stage", "2"},
    {"zero3", "deepspeed_config.zero_stage", "3"}, {"fsdp1", "distributed_type", "FSDP"},
    {"fsdp2", "distributed_type", "FSDP"},         {"multi_gpu", "distributed_type", "MULTI_GPU"},
    {"single_gpu", "distributed_type", "NO"},
};

Result<std::string> opened(const std::string& name, const LaunchFile& by,
                           const ImportInputs& inputs) {
  auto text = text_of_named(name, inputs);
  if (!text) return not_there(name, path_of(by));
  return *std::move(text);
}

// Returns the settings of the JSON file that --fsdp_config names. Their keys may lack "fsdp_".
Result<std::vector<FlatSetting>> fsdp_settings(const std::string& name, const LaunchFile& by,
                                               const ImportInputs& inputs) {
  TPSIM_TRY(std::string text, opened(name, by, inputs));
  TPSIM_TRY(std::vector<FlatSetting> settings, flat_settings({name, std::move(text)}));
  for (FlatSetting& one : settings) one.key = "fsdp_config." + one.key;
  return settings;
}

// Returns the sharding strategy of accelerate's environment; empty if --fsdp states another one.
std::string strategy_in_environment(const LaunchCommand& command) {
  const auto found = command.exported.find("FSDP_SHARDING_STRATEGY");
  const auto option = std::find_if(command.options.begin(), command.options.end(),
                                   [](const LaunchOption& one) { return one.name == "--fsdp"; });
  const bool counts = found != command.exported.end() && option != command.options.end() &&
                      option->value.find("shard") == std::string::npos;
  return counts ? found->second : "";
}

}  // namespace

bool is_trainer_command(const LaunchCommand& command) {
  const bool has_deepspeed = has_any_option(command.options, {"--deepspeed", "--deepspeed_config"});
  return !command.configs.empty() ||
         has_any_option(command.options,
                        {"--per_device_train_batch_size", "--per-device-train-batch-size",
                         "--model_name_or_path"}) ||
         (has_deepspeed && has_option(command.options, "--model_name"));
}

Result<ImportedPlan> import_trainer_command(const LaunchCommand& command, const LaunchFile& file,
                                            const ImportInputs& inputs) {
  std::vector<FlatSetting> settings;
  const auto put = [&](FlatSetting setting) {
    std::erase_if(settings, [&](const FlatSetting& one) { return one.key == setting.key; });
    settings.push_back(std::move(setting));
  };
  if (command.program.starts_with("trl ")) {
    for (const auto& [key, value] : kTrlDefaults) put({key, value, 0});
  }
  for (const std::string& marked : command.configs) {
    const std::string name = without_marks(marked);
    TPSIM_TRY(std::string text, opened(name, file, inputs));
    TPSIM_TRY(std::vector<FlatSetting> own, flat_settings({name, std::move(text)}));
    for (FlatSetting& one : own) put(std::move(one));
  }
  // The program's name, such as "trl dpo" or "scripts/run_dpo.py", states the kind of loss.
  for (const auto& [program, kind] : {std::pair{"dpo", "dpo"}, std::pair{"reward", "rm"}}) {
    const std::string_view name = command.program;
    const bool is_it = name == fmt::format("trl {}", program) ||
                       name.ends_with(fmt::format("{}.py", program)) ||
                       name.ends_with(fmt::format(".{}", program));
    if (is_it) put({"rl", kind, 0});
  }
  for (FlatSetting& one : settings_of_launcher(command.launcher)) put(std::move(one));
  for (const LaunchOption& option : command.options) {
    const std::string key = key_of(option.name);
    if (key == "config") continue;
    if (key == "accelerate_config") {
      const auto preset =
          std::find_if(std::begin(kTrlPresets), std::end(kTrlPresets),
                       [&](const LauncherOption& one) { return one.option == option.value; });
      if (preset != std::end(kTrlPresets)) {
        put({std::string(preset->key), std::string(preset->value), 0});
        put({"mixed_precision", "bf16", 0});
        continue;
      }
      const std::string name = without_marks(option.value);
      TPSIM_TRY(std::string text, opened(name, file, inputs));
      TPSIM_TRY(std::vector<FlatSetting> own, flat_settings({name, std::move(text)}));
      for (FlatSetting& one : own) put(std::move(one));
      continue;
    }
    if (key == "fsdp_config" && option.value.ends_with(".json")) {
      TPSIM_TRY(std::vector<FlatSetting> own,
                fsdp_settings(without_marks(option.value), file, inputs));
      for (FlatSetting& one : own) put(std::move(one));
      continue;
    }
    const bool is_config = key == "deepspeed_config" && !option.value.empty();
    put({is_config ? "deepspeed" : key, option.value.empty() ? "true" : option.value, 0});
  }
  if (const std::string strategy = strategy_in_environment(command); !strategy.empty()) {
    put({"fsdp_config.fsdp_sharding_strategy", strategy, 0});
  }
  std::map<std::string, std::string> given;  // --set values except the script's variables
  for (const auto& [name, value] : inputs.given) {
    const bool is_variable = file.text.find("$" + name) != std::string::npos ||
                             file.text.find("${" + name) != std::string::npos;
    if (name != "@" && (!is_variable || has_key(settings, name))) given.emplace(name, value);
  }
  settings = with_values(std::move(settings), given);
  ImportInputs all = inputs;
  if (all.gpus == 0 && command.size.nodes > 0) {  // the command's number of GPUs takes precedence
    all.gpus = command.size.nodes * command.size.gpus_per_node;
  }
  all.open = [&](const std::string& name) { return opened(name, file, inputs); };
  return import_trainer(FlatReader(std::move(settings)), file, all);
}

}  // namespace tpsim

// Imports commands that start a Trainer with accelerate, torchrun or deepspeed, from their
// arguments and the configuration files that they name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "formats/unset_marks.h"
#include "frameworks/huggingface/trainer_keys.h"
#include "frameworks/launch/command_words.h"
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

std::vector<FlatSetting> settings_of_launcher(const std::vector<std::string>& words) {
  std::vector<FlatSetting> settings;
  const bool is_accelerate = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.ends_with("accelerate") || word.starts_with("accelerate.");
  });
  for (std::size_t i = 0; is_accelerate && i < words.size(); ++i) {
    if (!words[i].starts_with("--")) continue;
    const std::size_t equals = words[i].find('=');
    const std::string name = key_of(words[i].substr(0, equals));
    const ProgramSetting* const row = fact_row("accelerate-options", name);
    if (row == nullptr) continue;
    const bool has_next = i + 1 < words.size() && !words[i + 1].starts_with("--");
    const std::string said = equals != std::string::npos ? words[i].substr(equals + 1)
                             : has_next                  ? words[i + 1]
                                                         : "true";
    settings.push_back({std::string(row->becomes),
                        row->as.empty() ? without_marks(said) : std::string(row->as), 0});
  }
  return settings;
}

// Returns the default that a Python program has for a setting, a number or "True": "KEY: int =
// field(default=512)" or add_argument("--KEY", default=512). Empty if there is none.
std::string default_in(const std::string& text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    const std::size_t line = text.rfind('\n', at) + 1;
    const bool is_field = text.find_first_not_of(' ', line) == at && text[at + key.size()] == ':';
    const bool is_option = at > 2 && text.compare(at - 2, 2, "--") == 0;
    if (!is_field && !is_option) continue;
    // Up to the next option, or the next line with the indentation of the field.
    constexpr std::size_t kNear = 80;
    std::string_view declared = std::string_view(text).substr(at + key.size(), kNear);
    const std::string next = is_option ? "add_argument" : "\n" + text.substr(line, at - line);
    for (std::size_t end = declared.find(next); end != declared.npos;
         end = declared.find(next, end + 1)) {
      if (declared.substr(end + next.size()).starts_with(' ')) continue;
      declared = declared.substr(0, end);
    }
    for (const std::string_view before : {"default=", "int = ", "[int] = ", "bool = "}) {
      const std::size_t found = declared.find(before);
      if (found == std::string_view::npos) continue;
      const std::string_view value = declared.substr(found + before.size());
      if (value.starts_with("True")) return "True";
      const auto digits = std::min(value.find_first_not_of("0123456789"), value.size());
      if (digits > 0) return std::string(value.substr(0, digits));
    }
  }
  return "";
}

// Returns the Python file of a program: "train/main.py" for the module train.main.
std::string file_of_program(std::string program) {
  if (program.ends_with(".py")) return program;
  std::replace(program.begin(), program.end(), '.', '/');
  return program + ".py";
}

// Returns the sharding strategy of accelerate's environment; empty if --fsdp states another one.
std::string strategy_in_environment(const LaunchCommand& command) {
  const auto found = command.exported.find("FSDP_SHARDING_STRATEGY");
  const auto option = std::find_if(command.options.begin(), command.options.end(),
                                   [](const LaunchOption& one) { return one.key == "--fsdp"; });
  const bool counts = found != command.exported.end() && option != command.options.end() &&
                      option->value.find("shard") == std::string::npos;
  return counts ? found->second : "";
}

}  // namespace

bool is_trainer_command(const LaunchCommand& command) {
  const bool has_deepspeed = has_any_key(command.options, {"--deepspeed", "--deepspeed_config"});
  return !command.configs.empty() ||
         has_any_key(command.options, {"--per_device_train_batch_size",
                                       "--per-device-train-batch-size", "--model_name_or_path"}) ||
         (has_deepspeed && has_key(command.options, "--model_name"));
}

Result<ImportedPlan> import_trainer_command(const LaunchCommand& command, const LaunchFile& file,
                                            const ImportInputs& inputs) {
  std::vector<FlatSetting> settings;
  const auto put = [&](FlatSetting setting) { put_setting(std::move(setting), settings); };
  if (command.program.starts_with("trl ")) {
    for (const ProgramSetting& row : fact_table("trl-defaults").rows) {
      put({std::string(row.key), std::string(row.becomes), 0});
    }
  }
  for (const std::string& marked : command.configs) {
    TPSIM_TRY(std::vector<FlatSetting> own,
              named_settings(without_marks(marked), path_of(file), inputs));
    put_settings(std::move(own), settings);
  }
  // The program's name, such as "trl dpo" or "scripts/run_dpo.py", states the kind of loss.
  for (const auto& [program, kind] : {std::pair{"dpo", "dpo"}, std::pair{"reward", "rm"}}) {
    const std::string_view name = command.program;
    const bool is_it = name == fmt::format("trl {}", program) ||
                       name.ends_with(fmt::format("{}.py", program)) ||
                       name.ends_with(fmt::format(".{}", program));
    if (is_it) put({"rl", kind, 0});
  }
  put_settings(settings_of_launcher(command.launcher), settings);
  for (const LaunchOption& option : command.options) {
    const std::string key = key_of(option.key);
    if (key == "config") continue;
    if (key == "accelerate_config") {
      if (const ProgramSetting* const preset = fact_row("trl-presets", option.value)) {
        put({std::string(preset->becomes), std::string(preset->as), 0});
        put({"mixed_precision", "bf16", 0});
        continue;
      }
    }
    const bool is_file =
        key == "accelerate_config" || (key == "fsdp_config" && option.value.ends_with(".json"));
    if (is_file) {
      TPSIM_TRY(std::vector<FlatSetting> own,
                named_settings(without_marks(option.value), path_of(file), inputs));
      for (FlatSetting& one : own) {  // the keys of FSDP's file may lack "fsdp_"
        if (key == "fsdp_config") one.key.insert(0, "fsdp_config.");
      }
      put_settings(std::move(own), settings);
      continue;
    }
    const bool is_config = key == "deepspeed_config" && !option.value.empty();
    put({is_config ? "deepspeed" : key, option.value.empty() ? "true" : option.value, 0});
  }
  // Hydra's "name=value", which the Trainer does not read: the program has settings of its own.
  for (const std::string& word : command.words) {
    if (is_option(word) || word.starts_with('-')) break;
    const std::size_t equals = word.find('=');
    const std::size_t start = word.find_first_not_of('+');
    if (equals != std::string::npos && equals > start) {
      put({word.substr(start, equals - start), word.substr(equals + 1), 0});
    }
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
  std::vector<std::string> defaults;
  const auto states_any = [&](std::span<const char* const> keys) {
    return std::any_of(keys.begin(), keys.end(),
                       [&](const char* key) { return has_key(settings, key); });
  };
  if (const auto text = text_of_named(file_of_program(command.program), inputs)) {
    const auto add = [&](const char* key) {
      const std::string value = has_key(settings, key) ? "" : default_in(*text, key);
      if (value.empty()) return false;
      settings.push_back({key, value, 0});
      defaults.emplace_back(key);
      return true;
    };
    for (const char* key :
         {"gradient_checkpointing", "gradient_accumulation_steps", "per_device_train_batch_size"}) {
      add(key);
    }
    if (!states_any(kLengthKeys) && !states_any(kAnswerKeys) && !inputs.keeps_seq) {
      for (const char* key : kLengthKeys) {
        if (add(key)) break;
      }
    }
  }
  TPSIM_TRY(ImportedPlan plan, import_trainer(FlatReader(std::move(settings)), file, all));
  if (!defaults.empty()) {
    plan.notes.push_back(
        fmt::format("the command omits settings that have their defaults in {}: {}",
                    command.program, fmt::join(defaults, ", ")));
  }
  return plan;
}

}  // namespace tpsim

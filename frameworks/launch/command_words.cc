#include "frameworks/launch/command_words.h"

#include <algorithm>

#include "core/base/text.h"
#include "frameworks/launch/facts.h"

namespace tpsim {
namespace {

// Whether the word is a Python file, such as "pretrain_gpt.py". It may follow python, "python -m"
// or "torchrun -m".
bool is_program(std::string_view word) { return word.ends_with(".py"); }

bool is_config(std::string_view word) {
  return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json");
}

// Whether the word is a program whose option -m names a Python module.
bool starts_python(std::string_view word) {
  const std::string_view name = word.substr(word.find_last_of('/') + 1);
  return name.starts_with("python") || matches_any(name, "torchrun accelerate deepspeed");
}

bool is_console_command(const std::vector<std::string>& words, std::size_t at) {
  if (at + 1 >= words.size()) return false;
  const std::string_view word = words[at];
  const std::string_view name = word.substr(word.find_last_of('/') + 1);
  const auto& known = fact_block("console-commands").others;
  return std::any_of(known.begin(), known.end(), [&](const auto& one) {
    return one.first == name && one.second == words[at + 1];
  });
}

// Splits torchtune's "tune run --nproc_per_node 8 full_finetune_distributed --config x". The
// options of torchrun precede the recipe, which counts as the program. Returns whether the words
// are such a command.
bool take_tune_words(const std::vector<std::string>& words, std::size_t at, CommandWords& parts) {
  const std::string_view name = std::string_view(words[at]).substr(words[at].find_last_of('/') + 1);
  if (name != "tune" || at + 1 >= words.size() || words[at + 1] != "run") return false;
  std::size_t i = at + 2;
  for (; i < words.size() && words[i].starts_with("--"); ++i) {
    parts.launcher.push_back(words[i]);
    const bool has_value = words[i].find('=') == std::string::npos && words[i] != "--standalone";
    if (has_value && i + 1 < words.size()) parts.launcher.push_back(words[++i]);
  }
  if (i >= words.size()) return false;
  parts.program = words[i];
  parts.training.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
  return true;
}

// Splits the words of a console command. "--launcher torchrun" is dropped, and arguments after "--"
// belong to the launcher. "key=value" overrides a setting of its configuration file.
void take_console_words(const std::vector<std::string>& words, std::size_t at,
                        CommandWords& parts) {
  parts.program = words[at] + " " + words[at + 1];
  bool for_launcher = false;
  for (std::size_t i = at + 2; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      for_launcher = true;
    } else if (for_launcher) {
      parts.launcher.push_back(word);
    } else if (word == "--launcher") {
      ++i;
    } else if (!word.starts_with("--launcher=")) {
      const bool sets = !word.starts_with('-') && word.find('=') != std::string::npos;
      parts.training.push_back(sets ? "--" + word : word);
    }
  }
}

// Whether the word selects a variant of torchtitan's activation checkpointing by itself:
// "activation-checkpoint:full".
bool is_variant(std::string_view word) {
  return word.starts_with("activation-checkpoint:") || word.starts_with("activation_checkpoint:");
}

// Returns the configuration files of a GPT-NeoX command such as "deepy.py train.py -d configs
// 125M.yml local_setup.yml": here configs/125M.yml and configs/local_setup.yml.
std::vector<std::string> configs_of_neox(const std::vector<std::string>& words) {
  std::vector<std::string> configs;
  std::string folder;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_folder = words[i] == "-d" || words[i] == "--conf_dir";
    if (is_folder && i + 1 < words.size()) {
      folder = words[++i] + "/";
    } else if (is_config(words[i])) {
      configs.push_back(folder + words[i]);
    }
  }
  return configs;
}

}  // namespace

bool is_option(std::string_view word) { return word.starts_with("--") && word.size() > 2; }

std::vector<LaunchOption> options_of(const std::vector<std::string>& words) {
  std::vector<LaunchOption> options;
  for (const std::string& word : words) {
    if (is_option(word)) {
      const std::size_t equals = word.find('=');
      LaunchOption option{word.substr(0, equals), ""};
      if (equals != std::string::npos) option.value = word.substr(equals + 1);
      put_setting(std::move(option), options);
    } else if (is_variant(word)) {
      options.push_back({word, ""});
      std::replace(options.back().key.begin(), options.back().key.end(), '_', '-');
    } else if (!options.empty() && !word.empty()) {
      std::string& value = options.back().value;
      value += (value.empty() ? "" : " ") + word;
    }
  }
  // Removes a pair of quotes around a whole value. Other quotes remain.
  for (LaunchOption& option : options) {
    std::string& value = option.value;
    const bool quoted = value.size() > 1 && (value.front() == '\'' || value.front() == '"') &&
                        value.back() == value.front();
    if (quoted) value = value.substr(1, value.size() - 2);
  }
  return options;
}

CommandWords command_words(const std::vector<std::string>& words) {
  CommandWords parts;
  bool behind = is_option(words.front());
  bool runs_python = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    // A quoted "--fp8-format hybrid" is split into two words.
    const std::string& word = words[i];
    const std::size_t blank = is_option(word) ? word.find(' ') : std::string::npos;
    if (behind && blank != std::string::npos) {
      parts.training.push_back(word.substr(0, blank));
      parts.training.emplace_back(trimmed(std::string_view(word).substr(blank)));
      continue;
    }
    if (behind && word == "--" && i + 1 < words.size() && !is_option(words[i + 1])) {
      // The program submits the command after "--".
      CommandWords submitted =
          command_words({words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end()});
      if (!submitted.program.empty()) return submitted;
    }
    if (behind) {
      parts.training.push_back(word);
      continue;
    }
    if (take_tune_words(words, i, parts)) return parts;
    if (is_console_command(words, i)) {
      take_console_words(words, i, parts);
      return parts;
    }
    runs_python |= starts_python(word);
    const bool is_flag =
        (word == "-m" && runs_python) || (word == "--module" && words.front() == "deepspeed");
    const bool module = is_flag && i + 1 < words.size() &&
                        !words[i + 1].starts_with("torch.distributed") &&
                        !words[i + 1].starts_with("accelerate.") && words[i + 1] != "torchrun";
    if (module || is_program(word)) {
      parts.program = module ? words[++i] : word;
      behind = true;
    } else {
      parts.launcher.push_back(word);
    }
  }
  return parts;
}

std::vector<std::string> configs_of(const CommandWords& parts) {
  std::vector<std::string> configs;
  for (std::size_t i = 0; i + 1 < parts.launcher.size(); ++i) {
    const std::string& word = parts.launcher[i];
    if (word == "--config_file" || word == "--config-file")
      configs.push_back(parts.launcher[i + 1]);
  }
  for (const std::string& word : parts.launcher) {
    if (word.starts_with("--config_file=")) configs.push_back(word.substr(word.find('=') + 1));
  }
  if (parts.program.ends_with("deepy.py")) return configs_of_neox(parts.training);
  for (std::size_t i = 0; i < parts.training.size(); ++i) {
    const std::string& word = parts.training[i];
    const bool leads = i == 0 && is_config(word) && !is_option(word);
    const bool is_named =
        i > 0 && is_config(word) &&
        matches_any(parts.training[i - 1], "--config --config-file --config_file");
    const bool is_joined =
        is_config(word) && (word.starts_with("--config=") || word.starts_with("config="));
    if (is_joined) {
      configs.push_back(word.substr(word.find('=') + 1));
    } else if (leads || is_named) {
      configs.push_back(word);
    }
  }
  return configs;
}

}  // namespace tpsim

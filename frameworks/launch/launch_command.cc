#include "frameworks/launch/launch_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "formats/shell_script.h"
#include "frameworks/launch/command_words.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/environment_parts.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

// Returns the number of options "--name" and of Hydra's "name=value".
std::size_t option_count(const ShellCommand& command) {
  const CommandWords parts = command_words(command.words);
  const auto sets = [](std::string_view word) {
    const std::size_t equals = word.find('=');
    return is_option(word) || (equals != std::string_view::npos && equals > 0);
  };
  return static_cast<std::size_t>(
      std::count_if(parts.training.begin(), parts.training.end(), sets));
}

bool starts_training(const ShellCommand& command) {
  if (command.words.empty() || command.words.front() == "echo") return false;
  if (is_option(command.words.front())) return true;
  return !command_words(command.words).program.empty();
}

// Returns the training command with the most options; of several, the first one. Null if no command
// has options or a configuration file.
const ShellCommand* training_command(const ShellScript& script) {
  const ShellCommand* best = nullptr;
  for (const ShellCommand& command : script.commands) {
    if (!starts_training(command)) continue;
    if (best == nullptr || option_count(command) > option_count(*best)) best = &command;
  }
  if (best == nullptr) return best;
  const bool says = option_count(*best) > 0 || !configs_of(command_words(best->words)).empty();
  return says ? best : nullptr;
}

// Returns the options in a file that other scripts source: the values of all variables that the
// file itself does not use and that contain options.
std::vector<std::string> sourced_words(const ShellScript& script) {
  std::vector<std::string> words;
  for (const std::string& name : script.variables.unused()) {
    const std::vector<std::string>& values = *script.variables.find(name);
    ShellVariables plain;
    plain.set("x", {});
    std::vector<std::string> own;
    for (const std::string& value : values) {
      if (values.size() > 1 || value.find("--") == std::string::npos) {
        own.push_back(value);
        continue;
      }
      plain.set("x", {value});
      for (std::string& field : plain.expanded("$x")) own.push_back(std::move(field));
    }
    if (own.empty() || !is_option(own.front())) continue;
    words.insert(words.end(), own.begin(), own.end());
  }
  return words;
}

// Number of nodes or GPUs. `unknown`: why the number is unknown.
struct Count {
  std::int64_t value = 0;
  std::string unknown;
};
bool take_count(std::string_view name, std::string_view text, Count& count) {
  const std::string_view last = trimmed(text.substr(
      text.find(':') == std::string_view::npos ? 0 : text.rfind(':') + 1));  // elastic "2:4"
  const auto number = parse_number<std::int64_t>(last);
  if (number && *number >= 1 && *number <= 1 << 20) {
    count = {*number, ""};
    return true;
  }
  const auto unset = unset_name(text);
  if (unset && count.unknown.empty()) {
    count.unknown =
        unset->empty()
            ? fmt::format("{} is the output of a program, which tpsim does not run", name)
            : fmt::format("{} is {}, which the script does not set", name, *unset);
  }
  return false;
}

Count count_of(const std::vector<std::string>& launcher, const ShellScript& script,
               std::initializer_list<const char*> options,
               std::initializer_list<const char*> variables,
               std::initializer_list<const char*> batch) {
  Count count;
  for (const char* name : options) {
    for (std::size_t i = 0; i < launcher.size(); ++i) {
      const std::string_view word = launcher[i];
      const bool joined = word.starts_with(std::string(name) + "=");
      if (!joined && (word != name || i + 1 >= launcher.size())) continue;
      const std::string_view value =
          joined ? word.substr(word.find('=') + 1) : std::string_view(launcher[i + 1]);
      if (take_count(name, value, count)) return count;
    }
  }
  for (const char* name : variables) {
    const std::vector<std::string>* values = script.variables.find(name);
    if (values != nullptr && !values->empty() && take_count(name, values->front(), count)) {
      return count;
    }
  }
  for (const char* name : batch) {
    const auto found = script.batch.find(name);
    if (found != script.batch.end() && take_count(name, found->second, count)) return count;
  }
  return count;
}

// Returns the number of GPUs in DeepSpeed's --include, such as "worker-0:0,1,2,3@worker-1:0". 0 if
// a node is listed without GPUs.
std::int64_t included_gpus(const std::vector<std::string>& launcher) {
  for (std::size_t i = 0; i + 1 < launcher.size(); ++i) {
    if (launcher[i] != "--include" && launcher[i] != "-i") continue;
    std::int64_t gpus = 0;
    std::string_view rest = launcher[i + 1];
    while (!rest.empty()) {
      const std::string_view node = cut_off(rest, "@");
      const std::size_t colon = node.find(':');
      if (colon == std::string_view::npos) return 0;
      gpus += 1 + std::count(node.begin() + static_cast<std::ptrdiff_t>(colon), node.end(), ',');
    }
    return gpus;
  }
  return 0;
}

void read_size(const std::vector<std::string>& launcher, const ShellScript& script,
               LaunchCommand& command) {
  Count nodes =
      count_of(launcher, script, {"--nnodes", "--num_nodes", "--num_machines", "--nodes", "-N"},
               {"NUM_NODES", "NNODES", "NODES", "NUM_MACHINES"}, {"nodes", "N"});
  Count gpus = count_of(launcher, script,
                        {"--nproc_per_node", "--nproc-per-node", "--num_gpus", "--gpus-per-node",
                         "--ntasks-per-node"},
                        {"GPUS_PER_NODE", "NPROC_PER_NODE", "NUM_GPUS", "GPU_PER_NODE",
                         "NPUS_PER_NODE", "NGPU", "NGPUS"},
                        {"gpus-per-node", "gres", "ntasks-per-node"});
  // If the script does not state GPUs per node, use the number of visible devices.
  const auto* visible = script.variables.find("CUDA_VISIBLE_DEVICES");
  if (gpus.value == 0 && visible != nullptr && visible->size() == 1 && !visible->front().empty() &&
      !unset_name(visible->front())) {
    gpus = {1 + std::count(visible->front().begin(), visible->front().end(), ','), ""};
  }
  const Count all = count_of(launcher, script, {"--num_processes"}, {"WORLD_SIZE"}, {});
  if (gpus.value > 0 && nodes.value == 0 && nodes.unknown.empty()) {
    nodes.value = std::max<std::int64_t>(1, all.value / gpus.value);
  }
  if (const std::int64_t included = included_gpus(launcher); included > 0) {
    command.size = {1, included};
  } else if (nodes.value > 0 && gpus.value > 0) {
    command.size = {nodes.value, gpus.value};
  } else if (all.value > 0) {
    command.size = {1, all.value};
  } else {
    command.size_unknown = !nodes.unknown.empty()  ? nodes.unknown
                           : !gpus.unknown.empty() ? gpus.unknown
                                                   : "the number of GPUs is not stated";
  }
}

// Parses a line of Megatron's argument block, "  tensor_model_parallel_size ......................
// 4". A launcher may have added a prefix.
std::optional<LaunchOption> argument_of(std::string_view line) {
  const std::size_t dots = line.find(" ...");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::size_t start = line.find_last_of(" \t", dots - (dots > 0 ? 1 : 0));
  const std::size_t begin = start == std::string_view::npos || start > dots ? 0 : start + 1;
  const std::string_view name = line.substr(begin, dots - begin);
  std::size_t end = dots + 1;
  while (end < line.size() && line[end] == '.') ++end;
  const bool is_word = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
  if (!is_word || end >= line.size() || line[end] != ' ') return std::nullopt;
  LaunchOption option{"--" + std::string(name), std::string(trimmed(line.substr(end)))};
  std::replace(option.name.begin(), option.name.end(), '_', '-');
  return option;
}

// Reads at most `most` arguments from a log. Skips arguments whose value is None or [].
LaunchCommand command_of_log(std::string_view text, std::size_t most) {
  LaunchCommand command;
  command.is_log = true;
  while (!text.empty() && command.options.size() < most) {
    auto option = argument_of(cut_off(text, "\n"));
    if (!option || option->value == "None" || option->value == "[]") continue;
    if (has_option(command.options, option->name)) continue;
    if (option->name == "--world-size") {
      const auto gpus = parse_number<std::int64_t>(option->value);
      command.size = {1, gpus && *gpus > 0 && *gpus <= 1 << 20 ? *gpus : 0};
      continue;
    }
    command.options.push_back(*std::move(option));
  }
  if (command.size.gpus_per_node == 0) command.size_unknown = "the log does not state world_size";
  return command;
}

constexpr std::size_t kMostOptions = 4096;

// Returns a hint that lists the variables which the script tested before it exited.
std::string exit_advice(const ShellScript& script, std::string_view text) {
  std::string names;
  for (const std::string& name : script.exit_asks) {
    const bool is_argument = name.find_first_not_of("0123456789") == std::string::npos;
    if (!is_argument) names += fmt::format("{}{}=VALUE", names.empty() ? "" : ",", name);
  }
  const std::string arguments = fmt::format("the script's arguments: {}", arguments_advice(text));
  if (names.empty())
    return "give the variables that the script checks with --set NAME=VALUE, or " + arguments;
  const bool takes =
      text.find("$1") != std::string_view::npos || text.find("${1") != std::string_view::npos;
  return fmt::format("the script checks variables: add --set {}{}", names,
                     takes ? "; or give " + arguments : "");
}

// Returns the script's variables as settings; empty if no known program has such settings.
std::vector<FlatSetting> exported_settings(const ShellScript& script) {
  std::vector<FlatSetting> settings;
  for (const std::string& name : script.variables.names()) {
    const std::vector<std::string>* values = script.variables.find(name);
    if (values != nullptr && values->size() == 1) settings.push_back({name, values->front(), 0});
  }
  if (program_of(settings) == nullptr) settings.clear();
  return settings;
}

Error too_many(const LaunchFile& file) {
  return bad_input("has more options than tpsim reads (4096)", path_of(file));
}

}  // namespace

std::string arguments_advice(std::string_view text) {
  std::map<int, std::string> names;
  constexpr int kMost = 40;
  for (int number = 1; number <= kMost; ++number) {
    for (const std::string& use :
         {fmt::format("=${}", number), fmt::format("=${{{}}}", number),
          fmt::format("=\"${}\"", number), fmt::format("=\"${{{}}}\"", number)}) {
      const std::size_t at = text.find(use);
      const std::size_t behind = at + use.size();
      const bool ends =
          at != std::string_view::npos &&
          (behind >= text.size() || std::isalnum(static_cast<unsigned char>(text[behind])) == 0);
      if (!ends || names.contains(number)) continue;
      const std::size_t start = text.find_last_of(" \t\n;", at);
      names[number] = std::string(text.substr(start + 1, at - start - 1));
    }
  }
  if (names.size() < 2) return "--set 1=VALUE for the first";
  std::string words;
  for (int number = 1; number <= names.rbegin()->first; ++number) {
    const auto name = names.find(number);
    words += (words.empty() ? "" : " ") +
             (name == names.end() ? fmt::format("ARGUMENT{}", number) : name->second);
  }
  return fmt::format("--set '@={}'", words);
}

Error with_arguments(Error error, std::string_view text, const ImportInputs& inputs) {
  const bool is_given =
      inputs.given.contains(std::string(kArguments)) || inputs.given.contains("1");
  const bool is_unset = error.message.find('$') != std::string::npos ||
                        error.message.find("is not set in the script") != std::string::npos;
  const bool takes = text.find("=$1") != std::string_view::npos ||
                     text.find("=\"$1") != std::string_view::npos ||
                     text.find("=${1") != std::string_view::npos;
  const std::string advice = arguments_advice(text);
  const bool names_all = advice.find('@') != std::string::npos;
  if (!is_unset || !takes || is_given || !names_all) return error;
  error.hint +=
      fmt::format("{}give the script's arguments: {}", error.hint.empty() ? "" : "; ", advice);
  return error;
}

bool has_arguments_block(std::string_view text) {
  const std::size_t at = text.find("tensor_model_parallel_size ..");
  return at != std::string_view::npos;
}

Error with_missing(Error error, const std::vector<std::string>& missing) {
  if (missing.empty()) return error;
  error.message += fmt::format("; it sources {}, which does not exist", fmt::join(missing, ", "));
  error.hint = fmt::format("put {} at the path that the script sources{}{}", missing.front(),
                           error.hint.empty() ? "" : "; or ", error.hint);
  return error;
}

Result<LaunchCommand> read_launch_command(const LaunchFile& file, const ImportInputs& inputs) {
  if (has_arguments_block(file.text)) {
    LaunchCommand command = command_of_log(file.text, kMostOptions);
    if (command.options.size() >= kMostOptions) return too_many(file);
    return command;
  }
  const ShellFileReader open = [&](const std::string& name) -> Result<std::string> {
    auto text = text_of_named(name, inputs);
    if (!text) return not_there(name, path_of(file));
    return *std::move(text);
  };
  TPSIM_TRY(ShellScript script, read_shell_script(file.text, path_of(file), inputs.given, open));
  LaunchCommand command;
  std::vector<std::string> launcher;
  if (const ShellCommand* training = training_command(script)) {
    if (option_count(*training) > kMostOptions) return too_many(file);
    const CommandWords parts = command_words(training->words);
    launcher = parts.launcher;
    command.program = parts.program;
    command.configs = configs_of(parts);
    command.options = options_of(parts.training);
    command.words = parts.training;
  } else if (!script.exits) {
    const std::vector<std::string> words = sourced_words(script);
    if (words.size() > 4 * kMostOptions) return too_many(file);
    command.options = options_of(words);
  }
  if (command.options.empty() && command.configs.empty() && command.words.empty()) {
    command.variables = exported_settings(script);
  }
  const bool says_nothing = command.options.empty() && command.configs.empty() &&
                            command.words.empty() && command.variables.empty();
  if (says_nothing) {
    const std::string other = called_script(file.text);
    const auto refused = [&](Error error) {
      return with_missing(std::move(error), script.missing);
    };
    if (script.exits) {
      return refused(bad_input("exits before it starts training", path_of(file),
                               exit_advice(script, file.text)));
    }
    return refused(bad_input(
        "contains no training command and no options", path_of(file),
        other.empty()
            ? "give a script that calls torchrun, deepspeed, srun, python, llamafactory-cli or "
              "axolotl, a file of options, or a Megatron log that prints its arguments; a "
              "configuration "
              "needs the ending .yaml, .toml, .json or .py"
            : fmt::format("the script starts {}: import that script. Give variables that the "
                          "calling script sets with --set NAME=VALUE",
                          other)));
  }
  read_size(launcher, script, command);
  command.launcher = std::move(launcher);
  for (const std::string& name : script.variables.names()) {
    const std::vector<std::string>* const words = script.variables.find(name);
    if (words == nullptr || words->empty()) continue;
    read_variable(name, words->front(), command.environment);
  }
  command.files = std::move(script.files);
  command.missing = std::move(script.missing);
  return command;
}

}  // namespace tpsim

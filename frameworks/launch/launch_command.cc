#include "frameworks/launch/launch_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "formats/shell_script.h"
#include "formats/unset_marks.h"
#include "frameworks/launch/command_words.h"
#include "frameworks/launch/environment_parts.h"

namespace tpsim {
namespace {

// Whether the words state options "--name", or Hydra's "name=value".
bool has_options(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    const std::size_t equals = word.find('=');
    return is_option(word) || (equals != std::string_view::npos && equals > 0);
  });
}

// Returns the options in a file that other scripts source: the values of all variables that the
// file itself does not use and that contain options.
std::vector<std::string> sourced_words(const ShellScript& script) {
  std::vector<std::string> words;
  for (const ShellVariable& variable : script.variables) {
    std::vector<std::string> own = variable.values;
    if (own.size() == 1 && own.front().find("--") != std::string::npos) own = words_in(own.front());
    if (variable.is_used || own.empty() || !is_option(own.front())) continue;
    words.insert(words.end(), own.begin(), own.end());
  }
  return words;
}

// Values of variables: those of the script, then those of the command's environment.
class Variables {
 public:
  Variables(const ShellScript& script, const ShellCommand* command)
      : script_(script), command_(command) {}

  std::string operator[](const std::string& name) const {
    for (const ShellVariable& one : script_.variables) {
      if (one.name == name && !one.values.empty()) return one.values.front();
    }
    if (command_ == nullptr) return "";
    const auto found = command_->environment.find(name);
    return found == command_->environment.end() ? "" : found->second;
  }

 private:
  const ShellScript& script_;
  const ShellCommand* command_;
};

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
    count.unknown = fmt::format("{} is {}", name, why_unset(*unset));
  }
  return false;
}

Count count_of(const std::vector<std::string>& launcher, const Variables& variables,
               std::initializer_list<const char*> options,
               std::initializer_list<const char*> names) {
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
  for (const char* name : names) {
    if (take_count(name, variables[name], count)) return count;
  }
  return count;
}

// Returns the number of GPUs in DeepSpeed's --include, such as "worker-0:0,1,2,3@worker-1:0". 0 if
// a node is listed without GPUs.
std::int64_t included_gpus(const std::vector<std::string>& launcher) {
  for (std::size_t i = 0; i < launcher.size(); ++i) {
    constexpr std::string_view kJoined = "--include=";
    const bool is_joined = launcher[i].starts_with(kJoined);
    const bool is_named = matches_any(launcher[i], "--include -i") && i + 1 < launcher.size();
    if (!is_joined && !is_named) continue;
    std::int64_t gpus = 0;
    std::string_view rest =
        is_joined ? std::string_view(launcher[i]).substr(kJoined.size()) : launcher[i + 1];
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

void read_size(const std::vector<std::string>& launcher, const Variables& variables,
               LaunchCommand& command) {
  Count nodes = count_of(launcher, variables,
                         {"--nnodes", "--nnode", "--num_nodes", "--num_machines", "--nodes", "-N"},
                         {"NUM_NODES", "NNODES", "NODES", "NUM_MACHINES", "SLURM_NNODES"});
  Count gpus =
      count_of(launcher, variables,
               {"--nproc_per_node", "--nproc-per-node", "--num_gpus", "--gpus-per-node",
                "--ntasks-per-node", "--npernode", "-npernode", "-ppn"},
               {"GPUS_PER_NODE", "NPROC_PER_NODE", "NUM_GPUS", "GPU_PER_NODE", "NPUS_PER_NODE",
                "NGPU", "NGPUS", "SLURM_GPUS_PER_NODE", "SLURM_NTASKS_PER_NODE"});
  // If the script does not state GPUs per node, use the number of visible devices.
  const std::string visible = variables["CUDA_VISIBLE_DEVICES"];
  if (gpus.value == 0 && !visible.empty()) {
    gpus = {1 + std::count(visible.begin(), visible.end(), ','), ""};
  }
  const Count all =
      count_of(launcher, variables, {"--num_processes", "-np"}, {"WORLD_SIZE", "SLURM_GPUS"});
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

// Returns a hint that lists the variables which the script tested before it ended.
std::string exit_advice(const ShellScript& script, std::string_view text) {
  std::string names;
  bool takes =
      text.find("$1") != std::string_view::npos || text.find("${1") != std::string_view::npos;
  for (const std::string& name : script.asked) {
    const bool is_argument =
        std::isalpha(static_cast<unsigned char>(name.front())) == 0 && name.front() != '_';
    takes |= is_argument;
    if (!is_argument) names += fmt::format("{}{}=VALUE", names.empty() ? "" : ",", name);
  }
  const std::string arguments = fmt::format("the script's arguments: {}", arguments_advice(text));
  if (names.empty()) return "give " + arguments;
  return fmt::format("the script checks variables: add --set {}{}", names,
                     takes ? "; or give " + arguments : "");
}

}  // namespace

Error too_many(const LaunchFile& file) {
  return bad_input("has more options than tpsim reads (4096)", path_of(file));
}

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
  const bool takes = text.find("=$1") != std::string_view::npos ||
                     text.find("=\"$1") != std::string_view::npos ||
                     text.find("=${1") != std::string_view::npos;
  const std::string advice = arguments_advice(text);
  const bool names_all = advice.find('@') != std::string::npos;
  if (!takes || is_given || !names_all) return error;
  error.hint +=
      fmt::format("{}give the script's arguments: {}", error.hint.empty() ? "" : "; ", advice);
  return error;
}

Error with_missing(Error error, const std::vector<std::string>& missing) {
  if (missing.empty()) return error;
  error.message += fmt::format("; it needs {}, which does not exist", fmt::join(missing, ", "));
  error.hint = fmt::format("put {} at the path that the script states{}{}", missing.front(),
                           error.hint.empty() ? "" : "; or ", error.hint);
  return error;
}

bool is_launched(const LaunchCommand& command) {
  constexpr std::string_view kLaunchers =
      "torchrun deepspeed accelerate srun mpirun mpiexec horovodrun ray jsrun aprun "
      "torch.distributed.* accelerate.*";
  const auto starts = [&](std::string_view word) {
    return matches_any(word.substr(word.find_last_of('/') + 1), kLaunchers);
  };
  return command.program.find(' ') != std::string::npos ||
         std::any_of(command.launcher.begin(), command.launcher.end(), starts);
}

namespace {

// Takes unknown words that are not the value of an option, since they may be further arguments.
void take_loose(LaunchCommand& command) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    const std::string& word = command.words[i];
    const bool is_value = i > 0 && is_option(command.words[i - 1]) &&
                          command.words[i - 1].find('=') == std::string::npos;
    const bool is_loose = is_unset_word(word) && (!is_value || may_be_words(word));
    if (is_loose) command.loose.push_back(unset_name(word).value_or(""));
    if (!is_loose || i == 0) kept.push_back(word);
  }
  command.words = std::move(kept);
}

void read_environment(const ShellScript& script, const ShellCommand* started,
                      LaunchCommand& command) {
  if (started != nullptr) {
    for (const auto& [name, value] : started->environment) {
      read_variable(name, value, command.environment);
    }
  }
  for (const ShellVariable& one : script.variables) {
    if (!one.values.empty()) read_variable(one.name, one.values.front(), command.environment);
  }
}

std::optional<LaunchCommand> training_of(const ShellCommand& started, const ShellScript& script) {
  CommandWords parts = command_words(started.words);
  const bool is_bare = is_option(started.words.front());
  const bool says = has_options(parts.training) || !configs_of(parts).empty();
  if ((parts.program.empty() && !is_bare) || !says) return std::nullopt;
  LaunchCommand command;
  command.program = parts.program;
  command.words = std::move(parts.training);
  command.launcher = std::move(parts.launcher);
  take_loose(command);
  command.options = options_of(command.words);
  command.configs = configs_of({command.launcher, command.words, command.program});
  read_size(command.launcher, Variables(script, &started), command);
  read_environment(script, &started, command);
  command.exported = started.environment;
  command.folder = started.folder;
  for (const ShellVariable& one : script.variables) {  // of a text that is read without bash
    if (one.values.size() == 1) command.exported.try_emplace(one.name, one.values.front());
  }
  return command;
}

}  // namespace

Result<std::vector<LaunchCommand>> trainings_of(const std::vector<ShellCommand>& commands,
                                                const ShellScript& script, const LaunchFile& file) {
  std::vector<LaunchCommand> trainings;
  for (const ShellCommand& one : commands) {
    if (one.words.size() > 4 * kMostOptions) return too_many(file);
    auto training = one.words.empty() ? std::nullopt : training_of(one, script);
    if (!training) continue;
    const bool is_known =
        std::any_of(trainings.begin(), trainings.end(), [&](const LaunchCommand& other) {
          return other.program == training->program && other.words == training->words;
        });
    if (!is_known) trainings.push_back(*std::move(training));
  }
  if (std::any_of(trainings.begin(), trainings.end(), is_launched)) {
    std::erase_if(trainings, [](const LaunchCommand& one) { return !is_launched(one); });
  }
  return trainings;
}

Result<ShellScript> script_of(const LaunchFile& file, const ImportInputs& inputs) {
  if (inputs.scripts != nullptr) {
    const auto known = inputs.scripts->find(path_of(file));
    if (known != inputs.scripts->end()) return known->second;
  }
  TPSIM_TRY(ShellScript script,
            read_shell_script(file, {inputs.given, inputs.answers, inputs.runs_scripts,
                                     inputs.trusts_scripts, inputs.runs_code}));
  if (inputs.scripts != nullptr) inputs.scripts->emplace(path_of(file), script);
  return script;
}

Result<LaunchCommand> options_of_script(const ShellScript& script, const LaunchFile& file) {
  LaunchCommand command;
  const std::vector<std::string> words = sourced_words(script);
  if (words.size() > 4 * kMostOptions) return too_many(file);
  command.options = options_of(words);
  if (command.options.empty()) command.variables = exported_settings(script);
  if (command.options.empty() && command.variables.empty()) {
    if (!script.asked.empty() && script.missing.empty()) {
      return bad_input("ends before it starts training", path_of(file),
                       exit_advice(script, file.text));
    }
    return with_missing(
        bad_input("contains no training command and no options", path_of(file),
                  "give a script that calls torchrun, deepspeed, srun, python, llamafactory-cli or "
                  "axolotl, a file of options, or a Megatron log that prints its arguments; a "
                  "configuration needs the ending .yaml, .toml, .json or .py"),
        script.missing);
  }
  read_size({}, Variables(script, nullptr), command);
  read_environment(script, nullptr, command);
  return command;
}

Result<LaunchCommand> read_launch_command(const LaunchFile& file, const ImportInputs& inputs) {
  if (has_arguments_block(file.text)) return command_of_log(file);
  TPSIM_TRY(const ShellScript script, script_of(file, inputs));
  TPSIM_TRY(std::vector<LaunchCommand> trainings, trainings_of(script.commands, script, file));
  if (!trainings.empty()) return std::move(trainings.front());
  return options_of_script(script, file);
}

}  // namespace tpsim

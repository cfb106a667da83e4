// Targets for command lines, launcher variables, logs, and launch files of other software.
#include <map>

#include "cli/commands/program.h"
#include "cli/options/values.h"
#include "core/software/stack_spec.h"
#include "evidence/logs/log_check.h"
#include "evidence/logs/log_reader.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_files.h"
#include "frameworks/launch/programs.h"
#include "ranks/nccl/launch_environment.h"
#include "sim/step/simulate.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/sim/small_scenario.h"

namespace tpsim::fuzz {
namespace {

std::vector<std::string> parts_of(std::string_view bytes, char separator, std::size_t most) {
  std::vector<std::string> parts;
  while (parts.size() < most && !bytes.empty()) {
    const std::size_t end = std::min(bytes.find(separator), bytes.size());
    parts.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return parts;
}

}  // namespace

// One word per line.
void read_command_line(std::string_view bytes) {
  std::vector<std::string> words = parts_of(bytes, '\n', 40);
  words.insert(words.begin(), "tpsim");
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  const auto line = cli::parse_command_line(static_cast<int>(argv.size()), argv.data());
  if (!line.ok()) return demand(!line.error().message.empty(), "an error says what is wrong");
  const auto* arguments = std::get_if<cli::Arguments>(&*line);
  if (arguments == nullptr) return;
  for (const cli::OptionRow& row : cli::option_rows()) {
    if (!arguments->has(row.opt)) continue;
    static_cast<void>(cli::integers_of(*arguments, row.opt, {1, 1 << 10}));
    static_cast<void>(cli::probability_of(*arguments, row.opt));
    static_cast<void>(cli::bytes_of(*arguments, row.opt));
  }
}

// One NAME=VALUE per line.
void read_launcher_variables(std::string_view bytes) {
  std::map<std::string, std::string> variables;
  for (const std::string& line : parts_of(bytes, '\n', 40)) {
    const std::size_t end = std::min(line.find('='), line.size());
    variables[line.substr(0, end)] = line.substr(std::min(end + 1, line.size()));
  }
  const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  static_cast<void>(lone_task(environment));
  static_cast<void>(collective_patience(environment));
  const auto launch = launch_from(environment);
  if (!launch.ok() || !launch->has_value()) return;
  const Launch& one = **launch;
  demand(one.rank >= 0 && one.rank < one.size, "a rank is one of its job");
  if (!one.folder.empty()) return;
  demand(one.port >= 1 && one.port <= 65535, "a port is one");
  demand(!one.token.empty(), "a job has a token");
}

void read_log(std::string_view bytes) {
  static const Scenario scenario = test::small_scenario(test::small_bloom());
  static const Plan plan = test::plan_of(scenario.model, {.tp = 2, .pp = 2, .dp = 4}, 8);
  static const Prediction predicted = simulate(scenario, plan).value();
  const auto log = parse_training_log(bytes, "input");
  if (!log.ok()) return;
  const auto check = check_log(scenario, plan, predicted, *log);
  if (!check.ok()) return;
  demand(check->measured.value() >= 0, "no step takes less than nothing");
}

// The first byte selects the stack. The files are separated by zero bytes.
void read_launch_files(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto stack =
      static_cast<LaunchStack>(static_cast<unsigned char>(bytes[0]) % kLaunchStackCount);
  const std::vector<std::string> names = launch_file_names(stack);
  const std::vector<std::string> texts = parts_of(bytes.substr(1), '\0', names.size());
  std::vector<LaunchFile> files;
  for (std::size_t i = 0; i < texts.size(); ++i) files.push_back({names[i], texts[i]});
  ImportInputs inputs;
  inputs.model = test::small_gpt();
  inputs.runs_scripts = false;
  const auto imported = import_plan(stack, files, inputs);
  if (imported.ok())
    demand(validate(imported->plan, imported->model).ok(), "an imported plan is legal");
}

// A script with any model.
void read_script(std::string_view bytes) {
  const LaunchStack stack = stack_of_text(bytes);
  const LaunchFile file{launch_file_names(stack).front(), std::string(bytes)};
  ImportInputs inputs;
  inputs.gpus = 64;
  inputs.runs_scripts = false;
  const auto imported = import_plan(stack, {file}, inputs);
  if (!imported.ok()) return;
  ModelSpec model = imported->model;
  if (!imported->has_vocab) model.vocab = 1;
  demand(validate(imported->plan, model).ok(), "an imported plan is legal");
}

// The first byte selects the format of the text.
void read_configuration(std::string_view bytes) {
  constexpr const char* kNames[] = {"it.yaml", "it.toml", "it.json"};
  const std::size_t format = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]) % 3;
  ImportInputs inputs;
  inputs.gpus = 16;
  inputs.micro_batch = 1;
  inputs.model = test::small_gpt();
  const auto imported = import_config({kNames[format], std::string(bytes)}, inputs);
  if (imported.ok()) {
    demand(validate(imported->plan, imported->model).ok(), "an imported plan is legal");
  }
}

// The first byte selects the program; the text is its settings as YAML.
void read_program(std::string_view bytes) {
  if (bytes.empty()) return;
  const std::vector<TrainingProgram>& all = all_programs();
  const TrainingProgram& program = all[static_cast<unsigned char>(bytes[0]) % all.size()];
  const auto settings = flat_yaml(bytes.substr(1), "it.yaml");
  if (!settings.ok()) return;
  LeftSettings left;
  ImportInputs inputs;
  inputs.gpus = 16;
  inputs.micro_batch = 1;
  inputs.model = test::small_gpt();
  inputs.model_wins = true;
  inputs.left = &left;
  const auto imported = import_program(program, *settings, nullptr, {"it.yaml", ""}, inputs);
  if (imported.ok()) {
    demand(validate(imported->plan, imported->model).ok(), "an imported plan is legal");
  }
}

}  // namespace tpsim::fuzz

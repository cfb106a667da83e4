// Imports launch files that tpsim or people wrote.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "frameworks/launch/framework.h"
#include "frameworks/launch/launch_files.h"
#include "frameworks/launch/named_model.h"
#include "frameworks/launch/programs.h"

namespace tpsim {

using Files = std::vector<LaunchFile>;

Result<LaunchSize> size_of(const LaunchCommand& command, const ImportInputs& inputs) {
  if (inputs.gpus > 0) return LaunchSize{1, inputs.gpus};
  if (command.size.nodes > 0) return command.size;
  if (command.is_whole) return bad_input(command.size_unknown, "", "add --gpus N");
  return bad_input(command.size_unknown, "",
                   "add --gpus N, or give the script's variables with --set NAME=VALUE");
}

void add_environment(const LaunchCommand& command, ImportedPlan& plan) {
  for (const auto& [part, value] : command.environment) plan.parts[part] = value;
}

void add_given_options(const ImportInputs& inputs, LaunchCommand& command) {
  for (const auto& [name, value] : inputs.given) {
    const bool leaves_out = value == "null";
    if (name.find('-') == std::string::npos && !leaves_out) continue;
    const std::string option = name.starts_with("--") ? name : "--" + name;
    drop_option(command.options, option);
    if (leaves_out) continue;
    command.options.push_back({option, value});
  }
}

namespace {

Result<ImportedPlan> plan_of_command(const Framework& framework, LaunchCommand command,
                                     const LaunchFile& file, const Files& files,
                                     const ImportInputs& inputs) {
  if (!command.variables.empty()) {
    command.program = path_of(file);  // MLPerf's folder names identify the benchmark
    if (const TrainingProgram* program = program_of(command.variables)) {
      return import_program(*program, command.variables, &command, file, inputs);
    }
  }
  if (auto plan = import_started_recipe(command, file, inputs)) return *std::move(plan);
  if (const TrainingProgram* program = program_of(command)) {
    return import_program(*program, settings_of_words(command.words), &command, file, inputs);
  }
  add_given_options(inputs, command);
  if (is_trainer_command(command)) return import_trainer_command(command, file, inputs);
  if (!inputs.more.empty()) {
    return bad_input("cannot be combined with the script, which does not name a configuration file",
                     path_of(inputs.more.front()),
                     "import the configuration files without the script");
  }
  return framework.read_command(std::move(command), file, files, inputs);
}

}  // namespace

// Errors and notes of the plan list sourced files that were not found, because these may contain
// further settings.
Result<ImportedPlan> read_script(const Framework& framework, const Files& files,
                                 const ImportInputs& inputs) {
  TPSIM_TRY(const LaunchFile file, file_named(files, framework.files().front()));
  TPSIM_TRY(LaunchCommand command, located(file, read_launch_command(file, inputs)));
  const std::vector<std::string> missing = command.missing;
  Result<ImportedPlan> read = plan_of_command(framework, std::move(command), file, files, inputs);
  if (!read.ok()) {
    return located(file, Result<ImportedPlan>(with_missing(
                             with_arguments(read.error(), file.text, inputs), missing)));
  }
  if (missing.empty()) return read;
  read->notes.push_back(
      fmt::format("the script sources {}, which does not exist: its settings are unknown",
                  fmt::join(missing, ", ")));
  return read;
}

ImportedPlan with_environment(const Framework& framework, const Files& files,
                              const ImportInputs& inputs, ImportedPlan plan) {
  const auto script = file_named(files, framework.files().front());
  if (!script.ok()) return plan;
  const auto command = read_launch_command(*script, inputs);
  if (command.ok()) add_environment(*command, plan);
  return plan;
}

Result<ImportedPlan> import_plan(LaunchStack stack, const Files& files,
                                 const ImportInputs& inputs) {
  const std::string path = files.empty() ? "" : path_of(files.front());
  return import_with_named_model(files, inputs, [&](const ImportInputs& with_model) {
    return with_settings_settled(path, with_model, [&](const ImportInputs& collecting) {
      return framework_of(stack).read(files, collecting);
    });
  });
}

Result<ImportedPlan> import_plan(LaunchStack stack, const Files& files, const ModelSpec& model) {
  ImportInputs inputs;
  inputs.model = model;
  return import_plan(stack, files, inputs);
}

}  // namespace tpsim

// Imports launch files that tpsim or people wrote.
#include <memory>

#include "frameworks/launch/framework.h"
#include "frameworks/launch/launch_files.h"
#include "frameworks/launch/named_model.h"

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
    put_setting({option, value}, command.options);
    if (leaves_out) command.options.pop_back();
  }
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
  ImportInputs own = inputs;
  if (own.scripts == nullptr) own.scripts = std::make_shared<decltype(own.scripts)::element_type>();
  return import_with_named_model(files, own, [&](const ImportInputs& with_model) {
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

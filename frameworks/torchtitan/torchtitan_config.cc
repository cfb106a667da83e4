// Imports torchtitan's TOML, given alone or named by a command, and torchtitan's command line.
// Source: torchtitan/config/job_config.py.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "formats/settings_text.h"
#include "formats/unset_marks.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/outside_settings.h"
#include "frameworks/torchtitan/plan_module.h"
#include "frameworks/torchtitan/titan_families.h"
#include "frameworks/torchtitan/titan_options.h"

namespace tpsim {
namespace {

// Converts settings of the FP8 and MXFP8 sections of older versions to today's names. The filter
// that excludes the output head is dropped, because the modelled recipes never quantize the head.
std::optional<LaunchOption> titan_recipe_option(const std::string& key, const std::string& value) {
  std::string name = key, text = value;
  for (const auto& [old, now] :
       {std::pair{"float8", "quantize.linear.float8"}, std::pair{"mx", "quantize.linear.mx"}}) {
    if (name.starts_with(std::string(old) + ".")) name = now + name.substr(std::strlen(old));
    if (text == old) text = now;
  }
  if (name.starts_with("model.converters")) return LaunchOption{"--model.converters", text};
  if (name.find("filter_fqns") != std::string::npos && value == "output") return std::nullopt;
  return LaunchOption{"--" + name, text == "true" ? "" : text};
}

std::vector<FlatSetting> with_todays_places(std::vector<FlatSetting> settings) {
  for (FlatSetting& one : settings) {
    if (const ProgramSetting* const row = fact_row("torchtitan-moved", one.key)) {
      one.key = row->becomes;
    }
    if (one.key == "float8.enable_float8_linear" && one.value == "true") {
      one = {"model.converters", "float8", one.line};
    }
  }
  return settings;
}

ShellOptions titan_options(const std::vector<FlatSetting>& settings) {
  ShellOptions shell;
  const bool quantizes = std::any_of(settings.begin(), settings.end(), [](const auto& one) {
    return one.key.starts_with("model.converters") && !one.value.empty();
  });
  for (const FlatSetting& setting : settings) {
    const std::string& key = setting.key;
    const bool of_recipe = key.starts_with("model.converters") || key.starts_with("float8.") ||
                           key.starts_with("mx.") || key.starts_with("quantize.");
    const bool is_off = setting.value == "false" || setting.value.empty();
    if ((of_recipe && !quantizes) || is_off) continue;
    if (of_recipe) {
      if (auto option = titan_recipe_option(key, setting.value)) {
        shell.options.push_back(*std::move(option));
      }
      continue;
    }
    constexpr std::string_view kComponents = "compile.components.";  // elements of a list
    LaunchOption* const before = find_setting(shell.options, "--compile.components");
    if (key.starts_with(kComponents) && before != nullptr) {
      before->value += " " + setting.value;
    } else if (key.starts_with(kComponents)) {
      shell.options.push_back({"--compile.components", setting.value});
    } else {
      shell.options.push_back({"--" + key, setting.value == "true" ? "" : setting.value});
    }
  }
  return shell;
}

// Returns the file's model, found by the name of its weights or else by the registry's flavor. If
// neither is known, adds a question and returns a model without layers.
ModelSpec titan_model(const std::vector<FlatSetting>& settings, const ImportInputs& inputs,
                      OpenQuestions& open) {
  if (inputs.model) return *inputs.model;
  const std::string assets = setting_value(settings, "model.hf_assets_path");
  if (!assets.empty() && inputs.load) {
    auto model = inputs.load(assets);
    if (model.ok()) return *std::move(model);
  }
  const std::string name = setting_value(settings, "model.name");
  const std::string flavour = in_lower_case(setting_value(settings, "model.flavor"));
  const ProgramSetting* const row = fact_row("torchtitan-flavors", name, flavour);
  if (row != nullptr && !flavour.empty() && inputs.load) {
    auto model = inputs.load(fmt::format("{}{}", row->becomes, row->value.empty() ? flavour : ""));
    if (model.ok()) return *std::move(model);
  }
  open.ask(
      {fmt::format("which model? The catalogue does not have flavor '{}' of '{}'", flavour, name),
       kModelAnswer});
  return {};
}

// Returns the number of GPUs if the file states all parallel degrees, otherwise 0.
std::int64_t titan_gpus(const std::vector<FlatSetting>& settings) {
  const auto degree = [&](const char* name, std::int64_t otherwise) {
    const std::string text = setting_value(settings, fmt::format("parallelism.{}_degree", name));
    return parse_number<std::int64_t>(text).value_or(otherwise);
  };
  std::int64_t gpus = degree("data_parallel_shard", -1);
  for (const char* name :
       {"data_parallel_replicate", "tensor_parallel", "pipeline_parallel", "context_parallel"}) {
    constexpr std::int64_t kMost = 1 << 20;
    const std::int64_t more = degree(name, 1);
    if (gpus < 1 || more < 1 || more > kMost / gpus) return 0;
    gpus *= more;
  }
  return gpus;
}

constexpr std::string_view kConfigOptions[] = {"--job.config_file", "--job.config-file"};

std::optional<std::string> taken_config(std::vector<LaunchOption>& options) {
  for (const std::string_view option : kConfigOptions) {
    const LaunchOption* found = find_setting(options, option);
    if (found == nullptr) continue;
    std::string name = without_marks(found->value);
    drop_settings(options, option);
    return name;
  }
  return std::nullopt;
}

// Imports the TOML file that the command names. Options of the command override its settings.
Result<ImportedPlan> import_named(const std::string& name, const LaunchCommand& command,
                                  const LaunchFile& file, const ImportInputs& inputs) {
  TPSIM_TRY(std::vector<FlatSetting> settings, named_settings(name, path_of(file), inputs));
  settings = with_todays_places(std::move(settings));
  std::vector<FlatSetting> own;
  for (const LaunchOption& option : command.options) {
    const std::string key = option.key.substr(option.key.find_first_not_of('-'));
    own.push_back({key, option.value.empty() ? "true" : option.value, 0});
  }
  put_settings(with_todays_places(std::move(own)), settings);
  ImportInputs all = inputs;
  if (all.gpus == 0 && command.size.nodes > 0) {
    all.gpus = command.size.nodes * command.size.gpus_per_node;
  }
  TPSIM_TRY(ImportedPlan result, located(LaunchFile{name, ""}, import_torchtitan(settings, all)));
  add_environment(command, result);
  return result;
}

}  // namespace

std::optional<ModelSpec> titan_flavour(const std::vector<FlatSetting>& settings,
                                       const ImportInputs& inputs) {
  OpenQuestions open;
  ModelSpec model = titan_model(settings, inputs, open);
  return open.status().ok() ? std::optional(std::move(model)) : std::nullopt;
}

Result<ImportedPlan> import_torchtitan(const std::vector<FlatSetting>& written,
                                       const ImportInputs& inputs) {
  const std::vector<FlatSetting> settings = with_todays_places(written);
  ImportedPlan result;
  result.stack = "torchtitan";
  OpenQuestions open;
  result.model = titan_model(settings, inputs, open);
  const std::int64_t gpus = inputs.gpus > 0 ? inputs.gpus : titan_gpus(settings);
  if (gpus < 1) open.ask(kHowManyGpus);
  TPSIM_TRY_STATUS(open.status());
  ShellOptions shell = titan_options(settings);
  shell.size = {1, gpus};
  if (!inputs.model) {  // the model was read from these options
    drop_settings(shell.options, "--model.name --model.flavor --model.hf_assets_path");
  }
  result.parts = take_torchtitan_parts(shell.options);
  leave_out_savings(shell.options, result);
  count_sequences(shell.options, result.model.seq);
  take_titan_choices(shell.options, inputs.keeps_seq, result.model);
  result.outside = take_outside(LaunchStack::kTorchTitan, shell.options, *inputs.left);
  TPSIM_TRY(result.plan, plan_of_torchtitan(shell, result, *inputs.left));
  return result;
}

Result<ImportedPlan> import_torchtitan_command(LaunchCommand command, const LaunchFile& file,
                                               const ImportInputs& inputs) {
  if (const auto name = taken_config(command.options)) {
    return import_named(*name, command, file, inputs);
  }
  if (!inputs.model) {
    return bad_input("which model? torchtitan's options state only a flavor", "",
                     "add --model NAME or its config.json");
  }
  ImportedPlan result;
  result.stack = "torchtitan";
  result.model = *inputs.model;
  result.parts = take_torchtitan_parts(command.options);
  take_plan_module(command.options, result.parts);
  leave_out_savings(command.options, result);
  count_sequences(command.options, result.model.seq);
  take_titan_choices(command.options, inputs.keeps_seq, result.model);
  result.outside = take_outside(LaunchStack::kTorchTitan, command.options, *inputs.left);
  TPSIM_TRY(const LaunchSize size, size_of(command, inputs));
  TPSIM_TRY(result.plan, plan_of_torchtitan({size, command.options}, result, *inputs.left));
  add_environment(command, result);
  return result;
}

}  // namespace tpsim

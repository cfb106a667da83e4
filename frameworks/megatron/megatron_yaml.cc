// Imports Megatron's arguments from YAML: files for --yaml-cfg, and NeMo's configurations before
// Megatron-Bridge, which have a trainer section.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/environment_parts.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/launch_options.h"
#include "frameworks/launch/nemo_settings.h"
#include "frameworks/launch/outside_settings.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

std::string argument_name(std::string_view key) {
  std::string name(key.substr(key.rfind('.') + 1));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string as_python(const std::string& value) {
  return value == "true" ? "True" : value == "false" ? "False" : value;
}

// Prefix of Megatron's options as YAML keys: "MODEL_ARGS: {--tp: 2}" has the key "MODEL_ARGS.--tp".
// Environment variables are in the section ENV_VARS.
constexpr std::string_view kModelArgs = "MODEL_ARGS.--";

// The length of samples when NeMo 1 fine-tunes.
constexpr std::string_view kTuningLength = "model.data.train_ds.max_seq_length";

// Whether the key is in a section that affects the training step. Keys of other sections are
// ignored.
bool is_of_training(std::string_view key) {
  if (key.starts_with("model.")) key.remove_prefix(6);
  return !matches_any(key, fact_names("megatron-options", "other_sections"));
}

bool changes_no_plan(const std::string& option) {
  if (is_outside(LaunchStack::kMegatronLm, option)) return true;
  return ignores(fact_table("nemo-1"), std::string_view(option).substr(2));
}

// Replaces option names in the plan's ignored settings by the names in the file, and reports unread
// settings. Unknown settings of the model section are errors.
void name_left(const std::map<std::string, std::string>& keys, const ResolvedRecipe* recipe,
               ImportedPlan& plan, LeftSettings& left) {
  std::vector<std::string> outside;
  for (std::string& option : plan.outside) {
    const auto key = keys.find(option);
    if (key == keys.end()) {
      outside.push_back(std::move(option));
      continue;
    }
    if (recipe != nullptr && recipe->is_default(key->second)) continue;
    const bool is_of_model =
        key->second.starts_with("model.") && key->second.find('.', 6) == std::string::npos;
    if (is_of_model && !changes_no_plan(option) && !is_outside(LaunchStack::kNemo, key->second)) {
      left.ask(key->second, "");
    } else {
      outside.push_back(key->second);
    }
  }
  plan.outside = std::move(outside);
}

void add_setting(const FlatSetting& setting, LaunchCommand& command,
                 std::map<std::string, std::string>& keys) {
  if (has_nemo_key(setting.key)) {
    if (auto option = nemo_option(setting.key, setting.value)) {
      if (option->key == "--num-query-groups") {
        put_setting(command.options, "--group-query-attention", "True");
      }
      put_setting(command.options, option->key, option->value);
    }
    return;
  }
  std::string name = argument_name(setting.key);
  std::string value = as_python(setting.value);
  if (const ProgramSetting* const row = fact_row("megatron-yaml", name, value)) {
    name = row->becomes;
    if (!row->as.empty()) value = row->as;
  }
  if (name == "-") return;
  if (name == "num-query-groups") put_setting(command.options, "--group-query-attention", "True");
  keys["--" + name] = setting.key;
  put_setting(command.options, "--" + name, value);
}

// Whether the key states the Python class or function that creates a section.
bool is_of_python(std::string_view key) {
  return key.ends_with(kMadeBy) || key.ends_with("_call_");
}

// Whether the setting is on by default, so that the value false has a meaning.
bool says_by_false(std::string_view key) {
  return has_nemo_key(key) ||
         matches_any(argument_name(key), fact_names("megatron-options", "on_by_default"));
}

void take_variable(const FlatSetting& setting, LaunchCommand& command) {
  constexpr std::string_view kVariables = "ENV_VARS.";
  if (!setting.key.starts_with(kVariables)) return;
  read_variable(setting.key.substr(kVariables.size()), setting.value, command.environment);
}

Result<ImportedPlan> import_model_args(const std::vector<FlatSetting>& settings,
                                       const ImportInputs& inputs) {
  LaunchCommand command;
  command.size_unknown = kHowManyGpus.what;
  for (const FlatSetting& setting : settings) {
    const std::string_view key = setting.key;
    take_variable(setting, command);
    const bool is_argument = key.starts_with(kModelArgs) || key.find('-') < key.find('.');
    if (!is_argument || setting.value == "false") continue;
    const bool is_switch = setting.value == "true";
    const std::string name(key.substr(key.starts_with(kModelArgs) ? kModelArgs.size() : 0));
    put_setting(command.options, "--" + name, is_switch ? "" : setting.value);
  }
  return import_megatron(std::move(command), inputs);
}

}  // namespace

Result<ImportedPlan> import_megatron_yaml(const std::vector<FlatSetting>& settings,
                                          const ImportInputs& inputs,
                                          const ResolvedRecipe* recipe) {
  const bool are_arguments =
      std::any_of(settings.begin(), settings.end(),
                  [](const FlatSetting& one) { return one.key.starts_with(kModelArgs); });
  if (are_arguments) return import_model_args(settings, inputs);
  LaunchCommand command;
  command.is_log = command.is_whole = true;
  command.size_unknown = kHowManyGpus.what;
  std::int64_t devices = 0;
  std::int64_t nodes = 1;
  std::int64_t pads_to = 0;
  std::vector<std::string> others;
  std::map<std::string, std::string> keys;  // the file's key of each option
  bool is_nemo = false;
  // A configuration that a program has printed lists all settings, like a log.
  const bool is_dump = has_key(settings, fmt::format("model.{}", kMadeBy));
  std::vector<FlatSetting> of_today = settings;
  apply_rules("nemo-1", of_today, *inputs.left);
  TPSIM_TRY(const std::vector<FlatSetting> whole_settings,
            with_precision(with_lists_joined(of_today)));
  for (const FlatSetting& setting : whole_settings) {
    if (setting.value.empty() || is_of_python(setting.key)) continue;
    take_variable(setting, command);
    is_nemo |= setting.key.starts_with("trainer.") || setting.key.starts_with("train.");
    if (setting.key == "model.tokenizer.type") {
      put_setting(command.options, "--tokenizer-type", setting.value);
    }
    const auto number = parse_number<std::int64_t>(setting.value);
    if (setting.key == kTuningLength && number) {
      put_setting(command.options, "--seq-length", setting.value);
      pads_to = *number;
      continue;
    }
    if (!is_of_training(setting.key)) {
      others.push_back(setting.key);
      continue;
    }
    if (setting.key == "trainer.devices" && number) devices = *number;
    if (setting.key == "trainer.num_nodes" && number) nodes = *number;
    if (setting.key == "trainer.devices" || setting.key == "trainer.num_nodes") continue;
    if (setting.value == "false" && !says_by_false(setting.key)) continue;
    add_setting(setting, command, keys);
  }
  // Without recompute the method and number of layers have no effect.
  if (!has_key(command.options, "--recompute-granularity")) {
    drop_settings(command.options, "--recompute-method --recompute-num-layers");
  }
  if (devices > 0 && nodes > 0 && devices <= 1 << 16 && nodes <= 1 << 16) {
    command.size = {nodes, devices};
  }
  ImportInputs whole = inputs;
  // If the file refers to a Hugging Face model that is known, use that model: the file may not
  // describe all of it.
  const FlatSetting* model = find_setting(settings, "model.hf_model_id");
  if (!whole.model && model != nullptr && !model->value.empty() && inputs.load) {
    const auto named = inputs.load(model->value);
    if (named.ok()) whole.model = *named;
  }
  TPSIM_TRY(ImportedPlan plan, import_megatron(std::move(command), whole));
  if (is_nemo) plan.stack = "nemo";
  if (pads_to > 0) {
    plan.notes.push_back(
        fmt::format("every sequence is predicted as {} tokens ({}), the maximum length: with "
                    "shorter samples a step takes less time and memory, so both are upper bounds",
                    pads_to, kTuningLength));
  }
  if (!is_dump) name_left(keys, recipe, plan, *inputs.left);
  plan.outside.insert(plan.outside.end(), others.begin(), others.end());
  return plan;
}

}  // namespace tpsim

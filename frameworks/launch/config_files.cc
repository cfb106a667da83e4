#include "frameworks/launch/config_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/programs.h"
#include "frameworks/launch/shell_files.h"

namespace tpsim {
namespace {

// Merges the settings of all files; a later file overrides earlier ones. For a DeepSpeed
// configuration, the setting "deepspeed" becomes its path.
Result<std::vector<FlatSetting>> settings_of(const LaunchFile& file, const ImportInputs& inputs) {
  TPSIM_TRY(std::vector<FlatSetting> settings, flat_settings(file));
  for (const LaunchFile& more : inputs.more) {
    TPSIM_TRY(const std::vector<FlatSetting> others, flat_settings(more));
    if (has_key(others, "zero_optimization.stage")) {
      std::erase_if(settings, [](const FlatSetting& one) { return one.key == "deepspeed"; });
      settings.push_back({"deepspeed", path_of(more), 0});
      continue;
    }
    for (const FlatSetting& one : others) {
      std::erase_if(settings, [&](const FlatSetting& own) { return own.key == one.key; });
      settings.push_back(one);
    }
  }
  return with_values(with_todays_sections(std::move(settings)), inputs.given);
}

const LeftOver* row_for(const FlatSetting& setting, std::span<const LeftOver> rows) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const LeftOver& one) {
    return has_pattern(setting.key, one.patterns);
  });
  return row == rows.end() ? nullptr : &*row;
}

bool is_switched_off(const FlatSetting& setting) {
  return setting.value.empty() || matches_any(in_lower_case(setting.value), "false 0 none no");
}

bool is_refused(const FlatSetting& setting, const LeftOver* row) {
  return row != nullptr && !row->why.empty() && !is_switched_off(setting) &&
         !is_harmless(*row, setting.value);
}

void refuse(const FlatSetting& setting, const LeftOver& row, const LaunchFile& file,
            LeftSettings& left) {
  left.refuse(setting.key, fmt::format("{}: {}", setting.key, setting.value), std::string(row.why),
              place_of(path_of(file), setting.line));
}

// Imports the command in a file of a scheduler.
Result<ImportedPlan> import_manifest(const LaunchFile& file, const ImportInputs& inputs) {
  return framework_of(LaunchStack::kKubernetes)
      .read({{kJobSetFile, file.text, path_of(file)}}, inputs);
}

}  // namespace

bool may_start_training(std::string_view text) {
  constexpr std::string_view kStarters[] = {
      "torchrun", "torch.distributed", "accelerate launch", "deepspeed ", "srun ", "mpirun "};
  return std::any_of(std::begin(kStarters), std::end(kStarters), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

bool has_prefix(const std::vector<FlatSetting>& settings, std::string_view prefix) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const FlatSetting& one) { return one.key.starts_with(prefix); });
}

bool is_of_bridge(const std::vector<FlatSetting>& settings) {
  for (const char* key :
       {"train.global_batch_size", "train.micro_batch_size", "train.train_iters"}) {
    if (has_key(settings, key)) return true;
  }
  return false;
}

bool states_model(const std::vector<FlatSetting>& settings) {
  return has_key(settings, "model.num_layers") && has_key(settings, "model.hidden_size") &&
         has_key(settings, "model.num_attention_heads");
}

std::vector<FlatSetting> with_todays_sections(std::vector<FlatSetting> settings) {
  constexpr std::string_view kWrapper = "ConfigContainer.";
  constexpr std::string_view kOld = "_config";
  const bool is_old =
      has_prefix(settings, "train_config.") || has_prefix(settings, "model_config.");
  for (FlatSetting& one : settings) {
    if (one.key.starts_with(kWrapper)) one.key.erase(0, kWrapper.size());
    const std::size_t dot = one.key.find('.');
    if (!is_old || dot == std::string::npos) continue;
    if (std::string_view(one.key).substr(0, dot).ends_with(kOld)) {
      one.key.erase(dot - kOld.size(), kOld.size());
    }
  }
  return settings;
}

void OpenQuestions::ask(OpenQuestion question) {
  const bool is_known = std::any_of(
      all_.begin(), all_.end(), [&](const OpenQuestion& one) { return one.what == question.what; });
  if (!is_known) all_.push_back(std::move(question));
}

Status OpenQuestions::status() const {
  if (all_.empty()) return Ok{};
  std::string what, answers;
  for (const OpenQuestion& one : all_) {
    what += (what.empty() ? "" : "; ") + one.what;
    answers += (answers.empty() ? "add " : ", and ") + one.answer;
  }
  return bad_input(std::move(what), "", std::move(answers));
}

void refuse_first(FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows,
                  LeftSettings& left) {
  std::erase_if(in.left(), [&](const FlatSetting& setting) {
    const LeftOver* const row = row_for(setting, rows);
    if (!is_refused(setting, row)) return false;
    refuse(setting, *row, file, left);
    return true;
  });
}

Status settle_left(FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows,
                   std::vector<std::string>& outside, LeftSettings& left) {
  for (const FlatSetting& setting : in.left()) {
    const LeftOver* const row = row_for(setting, rows);
    if (is_refused(setting, row)) {
      refuse(setting, *row, file, left);
    } else if (row == nullptr && !is_switched_off(setting)) {
      left.ask(setting.key, nearest(setting.key, in.asked()),
               place_of(path_of(file), setting.line));
    } else if (row != nullptr && row->why.empty() && !setting.value.empty()) {
      add_outside(setting.key, outside);
    }
  }
  return in.error();
}

Result<ImportedPlan> import_config(const LaunchFile& file, const ImportInputs& inputs) {
  return with_settings_settled(
      path_of(file), inputs, [&](const ImportInputs& collecting) -> Result<ImportedPlan> {
        if (file.name.ends_with(".py")) return import_recipe(file, collecting);
        if (("\n" + file.text).find("\napiVersion:") != std::string::npos) {
          return import_manifest(file, collecting);
        }
        TPSIM_TRY(const std::vector<FlatSetting> settings, settings_of(file, collecting));
        return import_settings(settings, file, collecting);
      });
}

Result<ImportedPlan> import_settings(const std::vector<FlatSetting>& settings,
                                     const LaunchFile& file, const ImportInputs& inputs) {
  if (const TrainingProgram* program = program_of(settings)) {
    return import_program(*program, settings, nullptr, file, inputs);
  }
  if (is_resolved_recipe(settings)) {
    return import_resolved(resolved_recipe(settings), file, inputs);
  }
  const auto framework =
      std::find_if(frameworks().begin(), frameworks().end(),
                   [&](const Framework* one) { return one->detects_settings(settings); });
  if (framework == frameworks().end() && may_start_training(file.text)) {
    return import_manifest(file, inputs);
  }
  if (framework == frameworks().end()) {
    return bad_input(
        "is not a configuration of a known training program", path_of(file),
        "tpsim reads files of torchtitan, nanotron, Megatron, NeMo, accelerate, "
        "Trainer, axolotl, DeepSpeed, verl, Primus, FlagScale, GPT-NeoX and torchtune, and "
        "commands in files of Kubernetes");
  }
  if (has_prefix(settings, "perf_matrix.")) {
    return bad_input("contains a matrix of many plans (perf_matrix)", path_of(file),
                     "write one plan as overrides instead: model.tensor_model_parallel_size, ..., "
                     "train.global_batch_size");
  }
  return (*framework)->read_settings(settings, file, inputs);
}

}  // namespace tpsim

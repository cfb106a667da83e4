#include "frameworks/launch/config_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "formats/settings_text.h"
#include "frameworks/launch/launch_settings.h"

namespace tpsim {
namespace {

bool has_prefix(const std::vector<FlatSetting>& settings, std::string_view prefix) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const FlatSetting& one) { return one.key.starts_with(prefix); });
}

// Sections of Megatron-Bridge, and what they were called.
bool is_of_bridge(const std::vector<FlatSetting>& settings) {
  for (const char* key :
       {"train.global_batch_size", "train.micro_batch_size", "train.train_iters"}) {
    if (has_key(settings, key)) return true;
  }
  return false;
}

// Of several files together: a DeepSpeed configuration beside others is one that they name.
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

}  // namespace

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

std::optional<ConfigFormat> config_format(const std::vector<FlatSetting>& settings) {
  if (has_key(settings, "training.seq_len") && has_prefix(settings, "model.")) {
    return ConfigFormat::kTorchTitan;
  }
  if (has_key(settings, "parallelism.tp") && has_prefix(settings, "tokens.")) {
    return ConfigFormat::kNanotron;
  }
  for (const char* key :
       {"tensor_model_parallel_size", "model_parallel.tensor_model_parallel_size"}) {
    if (has_key(settings, key)) return ConfigFormat::kMegatron;
  }
  if (has_prefix(settings, "MODEL_ARGS.--")) return ConfigFormat::kMegatron;
  if (is_of_bridge(settings)) return ConfigFormat::kNemo;
  if (has_key(settings, "model.tensor_model_parallel_size")) {
    const bool whole =
        has_key(settings, "model.micro_batch_size") && has_prefix(settings, "trainer.");
    return whole ? ConfigFormat::kMegatron : ConfigFormat::kNemo;
  }
  for (const char* key :
       {"per_device_train_batch_size", "base_model", "distributed_type", "zero_optimization.stage",
        "model_name_or_path", "gradient_accumulation_steps", "micro_batch_size"}) {
    if (has_key(settings, key)) return ConfigFormat::kTrainer;
  }
  return std::nullopt;
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

Status refuse_first(const FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows) {
  std::vector<FlatSetting> refused;
  for (const FlatSetting& setting : in.all()) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const LeftOver& one) {
      return matches_any(setting.key, one.patterns);
    });
    if (row != rows.end() && row->why != nullptr) refused.push_back(setting);
  }
  FlatReader reader(std::move(refused));
  std::vector<std::string> none;
  return settle_left(reader, file, rows, none);
}

Status settle_left(FlatReader& in, const LaunchFile& file, std::span<const LeftOver> rows,
                   std::vector<std::string>& outside) {
  TPSIM_TRY_STATUS(in.error());
  for (const FlatSetting& setting : in.left()) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const LeftOver& one) {
      return matches_any(setting.key, one.patterns);
    });
    const std::string where = place_of(path_of(file), setting.line);
    const bool is_off = setting.value.empty() || setting.value == "false" || setting.value == "0" ||
                        setting.value == "none" || setting.value == "no";
    if (row == rows.end()) {
      if (is_off) continue;
      return bad_input(fmt::format("unknown setting '{}'", setting.key), where,
                       meant(nearest(setting.key, in.asked()), leaving_out(setting.key)));
    }
    if (row->why != nullptr) {
      if (is_off || is_harmless(*row, setting.value)) continue;
      return bad_input(fmt::format("{}: {} makes another plan of it", setting.key, setting.value),
                       where, row->why);
    }
    if (!setting.value.empty()) add_outside(setting.key, outside);
  }
  return Ok{};
}

Result<ImportedPlan> import_config(const LaunchFile& file, const ImportInputs& inputs) {
  if (file.name.ends_with(".py")) return import_recipe(file, inputs);
  TPSIM_TRY(const std::vector<FlatSetting> settings, settings_of(file, inputs));
  return import_settings(settings, file, inputs);
}

Result<ImportedPlan> import_settings(const std::vector<FlatSetting>& settings,
                                     const LaunchFile& file, const ImportInputs& inputs) {
  const std::optional<ConfigFormat> format = config_format(settings);
  if (!format) {
    return bad_input(
        "holds the configuration of no training program that is known", path_of(file),
        "torchtitan, nanotron, Megatron, NeMo, accelerate, Trainer, axolotl, DeepSpeed");
  }
  if (has_prefix(settings, "perf_matrix.")) {
    return bad_input("is a matrix of many plans (perf_matrix)", path_of(file),
                     "write one of them as overrides: model.tensor_model_parallel_size, ..., "
                     "train.global_batch_size");
  }
  if (has_key(settings, "pipe_parallel_size") || has_key(settings, "pipe-parallel-size")) {
    return bad_input("is GPT-NeoX's configuration, which is not read", path_of(file),
                     "give its layout to simulate: --model, --tp, --pp, --dp, --micro-batch");
  }
  switch (*format) {
    case ConfigFormat::kTorchTitan: return located(file, import_torchtitan(settings, inputs));
    case ConfigFormat::kNanotron:
      return located(file, import_nanotron(FlatReader(settings), file, inputs));
    case ConfigFormat::kTrainer:
      return located(file, import_trainer(FlatReader(settings), file, inputs));
    case ConfigFormat::kMegatron: return located(file, import_megatron_yaml(settings, inputs));
    case ConfigFormat::kNemo: break;
  }
  if (!inputs.model && states_model(settings)) {
    return located(file, import_megatron_yaml(settings, inputs));
  }
  const LaunchFile yaml{std::string(kNemoYamlFile), file.text, path_of(file)};
  return import_plan(LaunchStack::kNemo, {yaml}, inputs);
}

}  // namespace tpsim

#include "frameworks/launch/config_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "formats/settings_text.h"
#include "frameworks/launch/launch_settings.h"

namespace tpsim {
namespace {

bool has_prefix(const std::vector<FlatSetting>& settings, std::string_view prefix) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const FlatSetting& one) { return one.key.starts_with(prefix); });
}

// Its sections of 8 bits had shorter names, and the head, which its files leave out by the name
// "output", takes part in no recipe here.
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

// torchtitan's own options are the keys of its file: "[training]" "seq_len = 1" is
// "--training.seq_len 1". A switch that is off is not given.
// Where torchtitan kept them in 2024, and where it keeps them now.
struct Moved {
  std::string_view old;
  std::string_view today;
};
constexpr Moved kMoved[] = {
    {"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree"},
    {"training.data_parallel_degree", "parallelism.data_parallel_shard_degree"},
    {"training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"},
    {"training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"},
    {"training.disable_loss_parallel", "parallelism.disable_loss_parallel"},
    {"training.warmup_steps", "lr_scheduler.warmup_steps"},
    {"training.batch_size", "training.local_batch_size"},
    {"experimental.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
    {"experimental.pipeline_parallel_schedule", "parallelism.pipeline_parallel_schedule"},
    {"experimental.pipeline_parallel_microbatches", "parallelism.pipeline_parallel_microbatches"},
    {"experimental.pipeline_parallel_split_points", "parallelism.pipeline_parallel_split_points"},
    {"experimental.context_parallel_degree", "parallelism.context_parallel_degree"},
    {"experimental.enable_async_tensor_parallel", "parallelism.enable_async_tensor_parallel"},
};

std::vector<FlatSetting> with_todays_places(std::vector<FlatSetting> settings) {
  for (FlatSetting& one : settings) {
    for (const Moved& row : kMoved) {
      if (one.key == row.old) one.key = row.today;
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
    constexpr std::string_view kComponents = "compile.components.";  // the elements of a list
    LaunchOption* const before = find_option(shell.options, "--compile.components");
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

// torchtitan's registry of models, as the catalogue calls them.
struct Flavours {
  std::string_view model;
  std::string_view flavour;  // empty: of all, behind `name`
  std::string_view name;
};
constexpr Flavours kFlavours[] = {
    {"llama2", "", "llama-2-"},
    {"llama3", "", "llama-3-"},
    {"qwen3", "", "qwen3-"},
    {"gpt_oss", "", "gpt-oss-"},
    {"deepseek_v3", "671b", "deepseek-v3"},
    {"deepseek_v3", "16b", "deepseek-v2-lite"},
    {"llama4", "17bx16e", "llama-4-scout"},
    {"llama4", "17bx128e", "llama-4-maverick"},
};

std::string value_at(const std::vector<FlatSetting>& settings, std::string_view key) {
  const FlatSetting* found = find_setting(settings, key);
  return found == nullptr ? "" : found->value;
}

// The flavour that the file names: its weights' name says more than the registry's. Without layers
// where it is asked for.
ModelSpec titan_model(const std::vector<FlatSetting>& settings, const ImportInputs& inputs,
                      OpenQuestions& open) {
  if (inputs.model) return *inputs.model;
  const std::string assets = value_at(settings, "model.hf_assets_path");
  if (!assets.empty() && inputs.load) {
    auto model = inputs.load(assets);
    if (model.ok()) return *std::move(model);
  }
  const std::string name = value_at(settings, "model.name");
  const std::string flavour = in_lower_case(value_at(settings, "model.flavor"));
  for (const Flavours& row : kFlavours) {
    if (name != row.model || flavour.empty() || !inputs.load) continue;
    if (!row.flavour.empty() && flavour != row.flavour) continue;
    auto model = inputs.load(row.flavour.empty() ? fmt::format("{}{}", row.name, flavour)
                                                 : std::string(row.name));
    if (model.ok()) return *std::move(model);
  }
  open.ask({fmt::format("which model? The catalogue knows no flavour '{}' of '{}'", flavour, name),
            kModelAnswer});
  return {};
}

// On how many GPUs it runs, where it leaves no degree to them; else 0.
std::int64_t titan_gpus(const std::vector<FlatSetting>& settings) {
  const auto degree = [&](const char* name, std::int64_t otherwise) {
    const std::string text = value_at(settings, fmt::format("parallelism.{}_degree", name));
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

Result<ImportedPlan> import_titan(const std::vector<FlatSetting>& written,
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
  take_titan_choices(shell.options, inputs.keeps_seq, result.model);
  result.parts = take_torchtitan_parts(shell.options);
  TPSIM_TRY(result.outside, take_outside(LaunchStack::kTorchTitan, shell.options));
  TPSIM_TRY(result.plan, plan_of_torchtitan(shell, result.model, result.parts));
  return result;
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
    if (!setting.value.empty()) outside.push_back(setting.key);
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
    case ConfigFormat::kTorchTitan: return located(file, import_titan(settings, inputs));
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

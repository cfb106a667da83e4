// Imports Megatron-Bridge's YAML overrides, with or without a launch script.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/megatron_options.h"
#include "frameworks/launch/nemo_settings.h"
#include "frameworks/launch/outside_settings.h"
#include "frameworks/nemo/nemo_run.h"

namespace tpsim {
namespace {

// Adds open questions for parallel degrees and batch sizes that the file does not state, because
// only the recipe contains them.
void ask_for_layout(const std::vector<FlatSetting>& settings, OpenQuestions& open) {
  constexpr std::string_view kNeeded[] = {
      "model.tensor_model_parallel_size", "model.pipeline_model_parallel_size",
      "model.context_parallel_size", "train.micro_batch_size", "train.global_batch_size"};
  std::string missing, example;
  for (const std::string_view key : kNeeded) {
    if (has_key(settings, key)) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", key);
    example += fmt::format("{}{}=N", example.empty() ? "" : ",", key);
  }
  if (missing.empty()) return;
  open.ask({fmt::format("the file overrides a recipe and does not state {}", missing),
            "--set " + example});
}

// Adds settings that are the same in all pre-training recipes, unless the file states another
// value.
void take_from_recipes(std::vector<FlatSetting>& settings, ImportedPlan& result) {
  const auto said = [&](std::initializer_list<std::string_view> keys) {
    return std::any_of(settings.begin(), settings.end(), [&](const FlatSetting& one) {
      return std::find(keys.begin(), keys.end(), one.key) != keys.end();
    });
  };
  std::string taken;
  const auto take = [&](const char* key, const char* what) {
    settings.push_back({key, "true", 0});
    taken += fmt::format("{}{}", taken.empty() ? "" : ", ", what);
  };
  if (said({"model.num_layers"})) return;  // the file is complete
  if (!said({"model.bf16", "model.fp16", "mixed_precision", "mixed_precision.dtype"})) {
    take("model.bf16", "bf16");
  }
  if (!said({"ddp.use_distributed_optimizer", "ddp.use_megatron_fsdp", "dist.use_megatron_fsdp"})) {
    take("ddp.use_distributed_optimizer", "a distributed optimizer");
  }
  const std::string tensor = setting_value(settings, "model.tensor_model_parallel_size", "1");
  if (tensor != "1" && !said({"model.sequence_parallel"})) {
    take("model.sequence_parallel", "sequence parallelism");
  }
  if (taken.empty()) return;
  result.notes.push_back(fmt::format(
      "tpsim assumes that the recipe sets {}; state its other settings with --set KEY=VALUE",
      taken));
}

// Removes the model's multi-token prediction layers if the file sets their number to 0.
void take_predictions(const std::vector<LaunchOption>& options, ModelSpec& model) {
  if (setting_value(options, "--mtp-num-layers") == "0") model.ends.prediction_layers = 0;
}

// Sets the sequence, dropout and expert capacity of the model to the values that the file states.
void take_stated_choices(const std::vector<LaunchOption>& options, bool keeps_seq,
                         ModelSpec& model) {
  ModelSpec chosen = model;
  take_run_choices(options, keeps_seq, chosen);
  model.seq = chosen.seq;
  if (has_key(options, "--attention-dropout")) {
    model.attention_dropout = chosen.attention_dropout;
  }
  if (has_key(options, "--hidden-dropout")) model.hidden_dropout = chosen.hidden_dropout;
  if (has_key(options, "--moe-expert-capacity-factor")) {
    model.experts.dropless = chosen.experts.dropless;
    model.experts.capacity_factor = chosen.experts.capacity_factor;
  }
}

// Removes software parts that follow from an absent option in Megatron. Here the recipe may have
// set the option, so its value is unknown.
void leave_unsaid_to_the_recipe(const std::vector<FlatSetting>& settings, PartValues& parts) {
  constexpr std::pair<StackPart, std::string_view> kSaidBy[] = {
      {StackPart::kOverlapGradientReduction, "ddp.overlap_grad_reduce"},
      {StackPart::kOverlapParameterGather, "ddp.overlap_param_gather"},
      {StackPart::kCpCommType, "model.cp_comm_type"},
      {StackPart::kDispatcher, "model.moe_token_dispatcher_type"},
      {StackPart::kPermute, "model.moe_permute_fusion"},
      {StackPart::kRouterKernel, "model.moe_router_fusion"},
      {StackPart::kExpertKernel, "model.moe_grouped_gemm"},
      {StackPart::kLossHead, "model.cross_entropy_loss_fusion"},
  };
  for (const auto& [part, key] : kSaidBy) {
    if (!has_key(settings, key)) parts.erase(part);
  }
}

void note_first_and_last(const std::vector<FlatSetting>& settings, ImportedPlan& result) {
  if (setting_value(settings, "mixed_precision").find("current") == std::string::npos) return;
  result.notes.push_back(
      "the precision recipe keeps the first and last block in 16 bits; they are predicted in the "
      "format of the other blocks");
}

}  // namespace

Result<ImportedPlan> plan_of_run(NemoRun run, const ImportInputs& inputs, ImportedPlan result) {
  LaunchCommand& command = run.command;
  note_first_and_last(run.settings, result);
  TPSIM_TRY(run.settings, located(run.file, with_precision(std::move(run.settings))));
  std::vector<std::string>* const differences = inputs.model_wins ? &result.notes : nullptr;
  TPSIM_TRY_STATUS(located(run.file, take_nemo_layers(result.model, run.settings, differences)));
  command.options = nemo_options(run.settings, path_of(run.file), *inputs.left);
  take_stated_choices(command.options, inputs.keeps_seq, result.model);
  leave_out_flash_dropout(command.options, result);
  leave_out_shared_overlap(command.options, result);
  take_predictions(command.options, result.model);
  if (differences != nullptr) {
    note_rare_shapes(result.model, command.options, *differences);
  } else {
    TPSIM_TRY_STATUS(
        located(run.file, take_rare_shapes(result.model, command.options, Unsaid::kIsTheModels)));
  }
  const std::vector<LaunchOption> all = command.options;
  PartValues parts;
  TPSIM_TRY_STATUS(located(run.file, take_moments(command.options, parts)));
  TPSIM_TRY_STATUS(located(run.file, take_mechanisms(command.options, parts)));
  result.outside = take_outside(LaunchStack::kNemo, command.options, *inputs.left);
  parts.merge(take_parts(command.options, result.model));
  TPSIM_TRY(const LaunchSize size, size_of(command, inputs));
  TPSIM_TRY(result.plan,
            located(run.file, plan_of_megatron(LaunchStack::kNemo,
                                               {size, command.options, false, differences},
                                               result.model, *inputs.left)));
  parts.merge(parts_of_megatron(all, result));
  parts.merge(shard_parts(all, result.plan, size));
  if (!run.is_whole) leave_unsaid_to_the_recipe(run.settings, parts);
  if (const auto modules = recomputed_modules(all, result.plan)) {
    parts[StackPart::kRecomputeModules] = *modules;
  }
  result.parts = std::move(parts);
  add_environment(command, result);
  return result;
}

// Imports YAML that overrides settings of a recipe. Other settings are in the recipe, which is not
// available.
Result<ImportedPlan> import_nemo(const std::vector<LaunchFile>& files, const ImportInputs& inputs) {
  TPSIM_TRY(const LaunchFile yaml, file_named(files, kNemoYamlFile));
  NemoRun run{yaml, {}};
  const auto launcher = file_named(files, launch_file_names(LaunchStack::kNemo).front());
  if (launcher.ok()) {
    TPSIM_TRY(run.command, read_launch_command(*launcher, inputs));
  }
  TPSIM_TRY(run.settings, flat_yaml(yaml.text, path_of(yaml)));
  run.settings = with_values(with_todays_sections(std::move(run.settings)), inputs.given);
  ImportedPlan result;
  result.stack = "nemo";
  OpenQuestions open;
  if (!inputs.model)
    open.ask({"which model? The YAML overrides a recipe and does not state it", kModelAnswer});
  // Files exported by tpsim have a launch script and state all settings. Other files rely on a
  // recipe.
  run.is_whole = launcher.ok();
  if (!run.is_whole) {
    ask_for_layout(run.settings, open);
    if (inputs.gpus == 0) open.ask(kHowManyGpus);
    take_from_recipes(run.settings, result);
  }
  TPSIM_TRY_STATUS(located(yaml, open.status()));
  result.model = *inputs.model;
  return plan_of_run(std::move(run), inputs, std::move(result));
}

}  // namespace tpsim

// Imports launch files that tpsim or people wrote.
#include <fmt/format.h>

#include <algorithm>

#include "core/scenario/plan_json.h"
#include "formats/shell_words.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/framework_files.h"
#include "frameworks/launch/framework_judge.h"
#include "frameworks/launch/job_files.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/launch_files.h"
#include "frameworks/launch/megatron_options.h"
#include "frameworks/launch/named_model.h"
#include "frameworks/launch/nemo_settings.h"
#include "frameworks/launch/outside_settings.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

using Files = std::vector<LaunchFile>;

// Whether the command has options of Megatron in 2021, when attention was unfused by default.
bool speaks_as_of_2021(const LaunchCommand& command) {
  return has_any_option(command.options,
                        {"--data-impl", "--checkpoint-activations", "--DDP-impl",
                         "--activations-checkpoint-method", "--model-parallel-size"});
}

// Returns the stack: "megatron-core" if an option exists only in Megatron-Core, otherwise
// "megatron-lm", whose layers have a single implementation.
std::string stack_of_megatron(const LaunchCommand& command) {
  const bool core = has_any_option(
      command.options, {"--use-mcore-models", "--spec", "--transformer-impl", "--attention-backend",
                        "--optimizer-cpu-offload", "--use-precision-aware-optimizer"});
  return core ? "megatron-core" : "megatron-lm";
}

// Converts BigScience's values of --position-embedding-type to Megatron's.
void use_megatrons_positions(std::vector<LaunchOption>& options) {
  LaunchOption* const kind = find_option(options, "--position-embedding-type");
  if (kind == nullptr) return;
  if (kind->value == "absolute") kind->value = "learned_absolute";
  if (kind->value == "rotary") kind->value = "rope";
}

// Moves options of rotary embeddings to `outside` if the model does not have rotary embeddings.
void take_unused_rotary(LaunchCommand& command, std::vector<std::string>& outside) {
  const LaunchOption* kind = find_option(command.options, "--position-embedding-type");
  const bool turns = kind != nullptr && kind->value != "learned_absolute" && kind->value != "none";
  if (turns) return;
  for (const char* name : {"--rotary-base", "--rotary-percent"}) {
    if (!has_option(command.options, name)) continue;
    drop_option(command.options, name);
    outside.emplace_back(name);
  }
}

// Moves options of experts to `outside` if the model does not have experts.
void take_unused_experts(const ModelSpec& model, LaunchCommand& command,
                         std::vector<std::string>& outside) {
  if (has_experts(model)) return;
  std::erase_if(command.options, [&](const LaunchOption& one) {
    if (!one.name.starts_with("--moe-")) return false;
    outside.push_back(one.name);
    return true;
  });
}

// Returns the model with a vocab size of 1 if the files do not state one, because plans need a
// vocab size.
ModelSpec with_vocab(const ImportedPlan& result) {
  ModelSpec model = result.model;
  if (!result.has_vocab) model.vocab = 1;
  return model;
}

// Returns the list for differences between a named model and the options. Null if differences are
// errors, as for a log, which shows the settings of the run.
std::vector<std::string>* differences_of(const LaunchCommand& command, const ImportInputs& inputs,
                                         ImportedPlan& result) {
  const bool wins = inputs.model && inputs.model_wins && !(command.is_log && !command.is_whole);
  return wins ? &result.notes : nullptr;
}

// Sets the model: the named model with the sequence, dropout and capacity of the options, or the
// model that the options describe.
Status settle_model(LaunchCommand& command, const ImportInputs& inputs, ImportedPlan& result) {
  if (inputs.model) {
    result.model = *inputs.model;
    take_run_choices(command.options, inputs.keeps_seq, result.model);
    const LaunchOption* predictions = find_option(command.options, "--mtp-num-layers");
    const bool trains = predictions != nullptr && predictions->value != "0";
    leave_out_predictions(trains, result);
  } else {
    TPSIM_TRY(StatedModel stated, model_of_megatron(command.options));
    result.model = std::move(stated.model);
    result.has_vocab = stated.has_vocab;
    TPSIM_TRY_STATUS(validate(with_vocab(result)));
  }
  leave_out_flash_dropout(command.options, result);
  leave_out_shared_overlap(command.options, result);
  // A log also prints default options of features that the model lacks.
  if (command.is_log && inputs.model) return Ok{};
  if (auto* const differences = differences_of(command, inputs, result)) {
    note_rare_shapes(result.model, command.options, *differences);
    return Ok{};
  }
  return take_rare_shapes(result.model, command.options);
}

}  // namespace

Result<LaunchSize> size_of(const LaunchCommand& command, const ImportInputs& inputs) {
  if (inputs.gpus > 0) return LaunchSize{1, inputs.gpus};
  if (command.size.nodes > 0) return command.size;
  if (command.is_whole) return bad_input(command.size_unknown, "", "add --gpus N");
  return bad_input(command.size_unknown, "",
                   "add --gpus N, or give the script's variables with --set NAME=VALUE");
}

void add_environment(const LaunchCommand& command, ImportedPlan& plan) {
  if (command.blocks_launches) plan.parts[StackPart::kBlockingLaunches] = 1;
  if (command.uses_tf32) {
    plan.parts[StackPart::kFp32Matmul] =
        static_cast<std::int64_t>(*command.uses_tf32 ? Fp32Matmul::kTf32 : Fp32Matmul::kIeee);
  }
  if (!command.expandable_segments) return;
  plan.parts[StackPart::kExpandableSegments] = *command.expandable_segments ? 1 : 0;
}

PartValues parts_of_megatron(const std::vector<LaunchOption>& options, const ImportedPlan& read) {
  PartValues parts = overlap_parts(options, read.plan);
  parts.merge(context_parts(options, read.plan));
  parts.merge(dispatch_parts(options, read.model));
  parts.merge(loss_parts(options));
  const bool plain_softmax = has_option(options, "--no-masked-softmax-fusion");
  if (plain_softmax && read.plan.attention == AttentionKind::kUnfused) {
    parts[StackPart::kAttentionKernel] = static_cast<std::int64_t>(AttentionKernel::kTorch);
  }
  return parts;
}

Result<ImportedPlan> import_megatron(LaunchCommand command, const ImportInputs& inputs) {
  ImportedPlan result;
  const bool is_early = speaks_as_of_2021(command);
  use_todays_names(command);
  use_megatrons_positions(command.options);
  result.stack = stack_of_megatron(command);
  if (is_early && !has_any_option(command.options, {"--use-flash-attn", "--attention-backend",
                                                    "--transformer-impl"})) {
    command.options.push_back({"--transformer-impl", "local"});
  }
  TPSIM_TRY_STATUS(settle_model(command, inputs, result));
  const std::vector<LaunchOption> all = command.options;
  TPSIM_TRY_STATUS(take_moments(command.options, result.parts));
  TPSIM_TRY_STATUS(take_mechanisms(command.options, result.parts));
  if (command.is_log) {
    refuse_logged(command.options, *inputs.left);
  } else {
    result.outside = take_outside(LaunchStack::kMegatronLm, command.options, *inputs.left);
  }
  take_unused_rotary(command, result.outside);
  take_unused_experts(result.model, command, result.outside);
  result.parts.merge(take_parts(command.options, result.model));
  TPSIM_TRY(const LaunchSize size, size_of(command, inputs));
  const ShellOptions shell{size, command.options, command.is_log,
                           differences_of(command, inputs, result)};
  std::vector<std::string> unasked;
  TPSIM_TRY(result.plan, plan_of_megatron(LaunchStack::kMegatronLm, shell, with_vocab(result),
                                          *inputs.left, &unasked));
  if (command.is_whole) {
    result.outside.insert(result.outside.end(), unasked.begin(), unasked.end());
  }
  result.parts.merge(parts_of_megatron(all, result));
  result.parts.merge(shard_parts(all, result.plan, size));
  if (const auto modules = recomputed_modules(all, result.plan)) {
    result.parts[StackPart::kRecomputeModules] = *modules;
  }
  add_environment(command, result);
  return result;
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

// Returns DeepSpeed's JSON configuration: a file that the script writes, one of the given files, or
// a file that the script refers to.
Result<LaunchFile> config_of(const LaunchCommand& command, const Files& files,
                             const ImportInputs& inputs) {
  std::string name(kDeepSpeedConfigFile);
  for (const LaunchOption& option : command.options) {
    if (option.name == "--deepspeed-config") name = without_marks(option.value);
  }
  const auto written = command.files.find(plain_path(name));
  if (written != command.files.end()) return LaunchFile{name, written->second};
  auto beside = file_named(files, name);
  if (beside.ok() || !inputs.open) return beside;
  auto text = text_of_named(name, inputs);
  if (text) return LaunchFile{name, *std::move(text)};
  return bad_input(
      fmt::format("the script names DeepSpeed's configuration {}, which does not exist", name), "",
      "run the program that writes the file first, or put a file of that name next to the script");
}

Result<ImportedPlan> import_deepspeed(LaunchCommand command, const Files& files,
                                      const ImportInputs& inputs) {
  ImportedPlan result;
  const bool norm_by_name = has_option(command.options, "--layernorm-epsilon");
  use_todays_names(command);
  TPSIM_TRY(LaunchFile config, config_of(command, files, inputs));
  TPSIM_TRY_STATUS(settle_model(command, inputs, result));
  TPSIM_TRY(const LaunchSize size, size_of(command, inputs));
  const bool is_forked_anew = speaks_megatron_core(command.options);
  result.stack = is_forked_anew ? "megatron-deepspeed" : "megatron-deepspeed-bloom";
  if (!is_forked_anew) {
    for (LaunchOption& option : command.options) {
      if (norm_by_name && option.name == "--norm-epsilon") option.name = "--layernorm-epsilon";
    }
    if (inputs.given.contains("vocab-size")) {  // from --set; this fork does not have the option
      drop_option(command.options, "--vocab-size");
    }
  }
  result.parts = take_deepspeed_parts(command.options);
  result.outside = take_outside(LaunchStack::kMegatronDeepSpeed, command.options, *inputs.left);
  take_unused_experts(result.model, command, result.outside);
  const ShellOptions shell{size, command.options, false, differences_of(command, inputs, result)};
  const ModelSpec model = with_vocab(result);
  if (is_forked_anew) {
    TPSIM_TRY(result.plan, plan_of_forked_deepspeed(shell, config, model, *inputs.left));
  } else {
    TPSIM_TRY(result.plan, plan_of_deepspeed(shell, config, model, *inputs.left));
  }
  if (result.plan.attention == AttentionKind::kFlash) {  // flash attention fuses the softmax
    result.parts.erase(StackPart::kAttentionKernel);
  }
  add_environment(command, result);
  return result;
}

Result<ImportedPlan> plan_of_command(LaunchStack stack, LaunchCommand command,
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
  if (stack == LaunchStack::kMegatronDeepSpeed) {
    return import_deepspeed(std::move(command), files, inputs);
  }
  if (stack == LaunchStack::kMegatronLm) {
    TPSIM_TRY_STATUS(check_started_program(command, file, inputs));
    const bool trains_text = is_text_training(command.program);
    TPSIM_TRY(ImportedPlan plan, import_megatron_script(std::move(command), file, inputs));
    if (trains_text) leave_out_encoders(plan);
    return plan;
  }
  return import_torchtitan_command(std::move(command), file, inputs);
}

// Imports a script. Errors and notes of the plan list sourced files that were not found, because
// these may contain further settings.
Result<ImportedPlan> import_command(LaunchStack stack, const LaunchFile& file, const Files& files,
                                    const ImportInputs& inputs) {
  TPSIM_TRY(LaunchCommand command, read_launch_command(file, inputs));
  const std::vector<std::string> missing = command.missing;
  Result<ImportedPlan> read = plan_of_command(stack, std::move(command), file, files, inputs);
  if (!read.ok()) read = with_arguments(read.error(), file.text, inputs);
  if (missing.empty()) return read;
  if (!read.ok()) return with_missing(read.error(), missing);
  read->notes.push_back(
      fmt::format("the script sources {}, which does not exist: its settings are unknown",
                  fmt::join(missing, ", ")));
  return read;
}

Result<ImportedPlan> import_slurm(const Files& files, const ImportInputs& inputs) {
  const auto plan_file = file_named(files, "plan.json");
  if (plan_file.ok()) {
    TPSIM_TRY(const PlanFile plan, parse_plan(plan_file->text, path_of(*plan_file)));
    ImportedPlan result;
    result.model = plan.model;
    result.plan = plan.plan;
    result.parts = plan.parts;
    result.stack = plan.stack;
    return result;
  }
  TPSIM_TRY(const LaunchFile job, file_named(files, kSlurmFile));
  TPSIM_TRY(const JobContents inside, contents_of_job(LaunchStack::kSlurm, files));
  return located(job, import_plan(inside.stack, inside.files, inputs));
}

// Adds parts that the launch script sets by environment variables, for stacks whose plan is in a
// YAML file.
ImportedPlan with_environment(LaunchStack stack, const Files& files, const ImportInputs& inputs,
                              ImportedPlan plan) {
  const auto script = file_named(files, launch_file_names(stack).front());
  if (!script.ok()) return plan;
  const auto command = read_launch_command(*script, inputs);
  if (command.ok()) add_environment(*command, plan);
  return plan;
}

Result<ImportedPlan> read_files(LaunchStack stack, const Files& files, const ImportInputs& inputs) {
  if (stack == LaunchStack::kNemo) return import_nemo(files, inputs);
  if (stack == LaunchStack::kAccelerate) {
    TPSIM_TRY(ImportedPlan plan, import_accelerate(files, inputs));
    return with_environment(stack, files, inputs, std::move(plan));
  }
  if (stack == LaunchStack::kDeepSpeed) {
    TPSIM_TRY(const LaunchFile script, file_named(files, launch_file_names(stack).front()));
    TPSIM_TRY(const LaunchFile config, file_named(files, kDeepSpeedConfigFile));
    ImportInputs with_config = inputs;
    with_config.more.push_back({config.name, config.text});  // the script names it without a folder
    TPSIM_TRY(ImportedPlan plan,
              located(script, import_command(stack, script, files, with_config)));
    return with_environment(stack, files, inputs, std::move(plan));
  }
  if (stack == LaunchStack::kNanotron) {
    TPSIM_TRY(const LaunchFile yaml, file_named(files, kNanotronYamlFile));
    TPSIM_TRY(ImportedPlan plan, import_config(yaml, inputs));
    return with_environment(stack, files, inputs, std::move(plan));
  }
  if (stack == LaunchStack::kSlurm) return import_slurm(files, inputs);
  if (stack == LaunchStack::kKubernetes) {
    TPSIM_TRY(const Files job, files_of_kubernetes(files));
    return import_slurm(job, inputs);
  }
  TPSIM_TRY(const LaunchFile file, file_named(files, launch_file_names(stack).front()));
  return located(file, import_command(stack, file, files, inputs));
}

}  // namespace

Result<ImportedPlan> import_plan(LaunchStack stack, const Files& files,
                                 const ImportInputs& inputs) {
  const std::string path = files.empty() ? "" : path_of(files.front());
  return import_with_named_model(files, inputs, [&](const ImportInputs& with_model) {
    return with_settings_settled(path, with_model, [&](const ImportInputs& collecting) {
      return read_files(stack, files, collecting);
    });
  });
}

Result<ImportedPlan> import_plan(LaunchStack stack, const Files& files, const ModelSpec& model) {
  ImportInputs inputs;
  inputs.model = model;
  return import_plan(stack, files, inputs);
}

}  // namespace tpsim

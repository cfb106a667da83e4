// Megatron-LM: writes and reads the arguments of pretrain_gpt.py.
#include <fmt/format.h>

#include "core/software/launched_models.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/framework_judge.h"
#include "frameworks/launch/launch_files.h"
#include "frameworks/launch/launcher.h"
#include "frameworks/launch/megatron_options.h"
#include "frameworks/launch/outside_settings.h"

namespace tpsim {
namespace {

// Whether the command has options of Megatron in 2021, when attention was unfused by default.
bool speaks_as_of_2021(const LaunchCommand& command) {
  return has_any_key(command.options, {"--data-impl", "--checkpoint-activations", "--DDP-impl",
                                       "--activations-checkpoint-method", "--model-parallel-size"});
}

// Returns the stack: "megatron-core" if an option exists only in Megatron-Core, otherwise
// "megatron-lm", whose layers have a single implementation.
std::string stack_of_megatron(const LaunchCommand& command) {
  const bool core = has_any_key(
      command.options, {"--use-mcore-models", "--spec", "--transformer-impl", "--attention-backend",
                        "--optimizer-cpu-offload", "--use-precision-aware-optimizer"});
  return core ? "megatron-core" : "megatron-lm";
}

// Converts BigScience's values of --position-embedding-type to Megatron's.
void use_megatrons_positions(std::vector<LaunchOption>& options) {
  LaunchOption* const kind = find_setting(options, "--position-embedding-type");
  if (kind == nullptr) return;
  if (kind->value == "absolute") kind->value = "learned_absolute";
  if (kind->value == "rotary") kind->value = "rope";
}

// Moves options of rotary embeddings to `outside` if the model does not have rotary embeddings.
void take_unused_rotary(LaunchCommand& command, std::vector<std::string>& outside) {
  const std::string kind = setting_value(command.options, "--position-embedding-type", "none");
  if (kind != "learned_absolute" && kind != "none") return;
  for (const char* name : {"--rotary-base", "--rotary-percent"}) {
    if (drop_settings(command.options, name)) outside.emplace_back(name);
  }
}

// Whether the settings are of NeMo 1, whose files state the whole model.
bool is_nemo_1(const std::vector<FlatSetting>& settings) {
  return !is_of_bridge(settings) && has_key(settings, "model.tensor_model_parallel_size") &&
         has_key(settings, "model.micro_batch_size") && has_prefix(settings, "trainer.");
}

// Adds arguments that exported files omit and Megatron requires: data, tokenizer and schedule.
std::vector<LaunchOption> with_required(std::vector<LaunchOption> options) {
  options.insert(options.end(), {{"--train-iters", "10"},
                                 {"--lr", "1e-4"},
                                 {"--mock-data", ""},
                                 {"--tokenizer-type", "NullTokenizer"}});
  return options;
}

class MegatronLm final : public Framework {
 public:
  MegatronLm() : Framework(LaunchStack::kMegatronLm, Launcher::kMegatron) {}

  bool runs(const std::string& stack) const override {
    return Framework::runs(stack) || is_version_of(stack, "megatron-core");
  }
  bool detects_script(std::string_view text) const override { return has_arguments_block(text); }
  bool detects_settings(const std::vector<FlatSetting>& settings) const override {
    return has_key(settings, "tensor_model_parallel_size") ||
           has_key(settings, "model_parallel.tensor_model_parallel_size") ||
           has_prefix(settings, "MODEL_ARGS.--") || is_nemo_1(settings);
  }
  Result<ImportedPlan> read_command(LaunchCommand command, const LaunchFile& script,
                                    const std::vector<LaunchFile>&,
                                    const ImportInputs& inputs) const override {
    TPSIM_TRY_STATUS(check_started_program(command, script, inputs));
    const bool trains_text = is_text_training(command.program);
    const std::string program = command.program;
    Result<ImportedPlan> read = import_megatron_script(std::move(command), script, inputs);
    if (!read.ok()) return with_recipe_advice(read.error(), program, inputs);
    ImportedPlan plan = *std::move(read);
    if (trains_text) leave_out_encoders(plan);
    return plan;
  }
  Result<ImportedPlan> read_settings(const std::vector<FlatSetting>& settings,
                                     const LaunchFile& file,
                                     const ImportInputs& inputs) const override {
    return located(file, import_megatron_yaml(settings, inputs));
  }

  Result<std::vector<LaunchFile>> write(const PlanFile& file, const LaunchSize& size,
                                        const StackSpec& software) const override {
    TPSIM_TRY(LaunchOptions options, megatron_settings(stack(), file, software));
    add_shard_instances(file.plan, size.domain_gpus, software.parts.shard_group, options);
    return std::vector<LaunchFile>{
        shell_file(stack(), file, size, options, expert_lines(file, size, software))};
  }
  std::string start_command(const ModelSpec& model, const std::string& job) const override {
    return torchrun_command(job,
                            is_hybrid_pattern(model) ? "pretrain_hybrid.py" : "pretrain_gpt.py");
  }

  std::string_view judge() const override { return "megatron-lm"; }
  Status prepare_check(const std::vector<LaunchFile>&, const ModelSpec&,
                       JudgedFiles& judged) const override {
    judged.given.set("arguments", judged_arguments(with_required(judged.options)));
    return Ok{};
  }
};

}  // namespace

void take_unused_experts(const ModelSpec& model, LaunchCommand& command,
                         std::vector<std::string>& outside) {
  if (has_experts(model)) return;
  std::erase_if(command.options, [&](const LaunchOption& one) {
    // Another name for the number of experts is unknown.
    if (!one.key.starts_with("--moe-") || one.key.ends_with("-experts")) return false;
    outside.push_back(one.key);
    return true;
  });
}

ModelSpec with_vocab(const ImportedPlan& result) {
  ModelSpec model = result.model;
  if (!result.has_vocab) model.vocab = 1;
  return model;
}

std::vector<std::string>* differences_of(const LaunchCommand& command, const ImportInputs& inputs,
                                         ImportedPlan& result) {
  const bool wins = inputs.model && inputs.model_wins && !(command.is_log && !command.is_whole);
  return wins ? &result.notes : nullptr;
}

Status settle_model(LaunchCommand& command, const ImportInputs& inputs, ImportedPlan& result) {
  if (inputs.model) {
    result.model = *inputs.model;
    take_run_choices(command.options, inputs.keeps_seq, result.model);
    const std::string predictions = setting_value(command.options, "--mtp-num-layers", "0");
    leave_out_predictions(predictions != "0", result);
  } else {
    TPSIM_TRY(StatedModel stated, model_of_megatron(command.options));
    result.model = std::move(stated.model);
    result.has_vocab = stated.has_vocab;
    TPSIM_TRY_STATUS(validate(with_vocab(result)));
  }
  leave_out_flash_dropout(command.options, result);
  leave_out_shared_overlap(command.options, result);
  leave_out_savings(command.options, result);
  // A log also prints default options of features that the model lacks.
  if (command.is_log && inputs.model) return Ok{};
  if (auto* const differences = differences_of(command, inputs, result)) {
    note_rare_shapes(result.model, command.options, *differences);
    return Ok{};
  }
  return take_rare_shapes(result.model, command.options);
}

PartValues parts_of_megatron(const std::vector<LaunchOption>& options, const ImportedPlan& read) {
  PartValues parts = overlap_parts(options, read.plan);
  parts.merge(context_parts(options, read.plan));
  parts.merge(dispatch_parts(options, read.model));
  parts.merge(loss_parts(options));
  const bool plain_softmax = has_key(options, "--no-masked-softmax-fusion");
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
  for (LaunchOption& option : command.options) {  // of Megatron-LLM
    if (option.key == "--glu-activation" && option.value == "swiglu") option = {"--swiglu", ""};
  }
  result.stack = stack_of_megatron(command);
  if (is_early && !has_any_key(command.options,
                               {"--use-flash-attn", "--attention-backend", "--transformer-impl"})) {
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

std::string expert_lines(const PlanFile& file, const LaunchSize& size, const StackSpec& software) {
  const std::int64_t ep = file.plan.degrees.ep;
  const bool has_groups = has_experts(file.model) && ep > 1;
  std::string lines = has_groups && software.parts.ep_overlap
                          ? "export CUDA_DEVICE_MAX_CONNECTIONS=32\n"
                          : ordered_kernels_line(file.plan);
  // Megatron-Core refuses the pair otherwise (training/arguments.py:1962).
  if (software.parts.expandable_segments && software.parts.cuda_graphs != 0) {
    lines += "export NCCL_GRAPH_REGISTER=0\n";
  }
  if (has_groups && software.parts.dispatcher == Dispatcher::kHybridEp && size.domain_size > 0) {
    lines += fmt::format(
        "export NVLINK_DOMAIN_SIZE={}\nexport NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN={}\n"
        "export USE_MNNVL={}\n",
        size.domain_size, std::min(ep, size.domain_gpus),
        size.domain_size > size.gpus_per_node ? 1 : 0);
  }
  return lines;
}

const Framework& megatron_lm() {
  static const MegatronLm framework;
  return framework;
}

}  // namespace tpsim

// Writes files for Hugging Face's accelerate: a YAML for FSDP or plain data parallelism, and the
// arguments of the training script.
//
// The arguments are those of transformers' Trainer and TRL's scripts. trainer_config.cc reads both
// files. Sources: accelerate's utils/dataclasses.py and commands/launch.py.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "frameworks/huggingface/trainer_arguments.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/held_settings.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/launcher.h"
#include "lowering/passes/shard_groups.h"

namespace tpsim {
namespace {

constexpr LaunchStack kStack = LaunchStack::kAccelerate;
constexpr const char* kAcceleratorConfig = "--accelerator_config";

// Writes FSDP 2, whose memory is predicted. Its mesh states how many ranks share the state.
std::string fsdp_text(const PlanFile& file, const LaunchSize& size) {
  const Plan& plan = file.plan;
  if (plan.zero == 0) return "";
  const auto part = file.parts.find(StackPart::kShardGroup);
  const std::int64_t group = part == file.parts.end() ? kShardOverAll : part->second;
  const std::int64_t shards = shard_ranks(plan, size.domain_gpus, group);
  std::string text = fmt::format(
      "fsdp_config:\n"
      "  fsdp_activation_checkpointing: {}\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
      "  fsdp_offload_params: {}\n"
      "  fsdp_reshard_after_forward: {}\n"
      "  fsdp_state_dict_type: SHARDED_STATE_DICT\n"
      "  fsdp_version: 2\n",
      plan.recompute == Recompute::kFull, offloads_weights(plan), plan.zero == 3);
  if (shards == plan.degrees.dp) return text;
  return text + fmt::format(
                    "parallelism_config:\n"
                    "  parallelism_config_dp_replicate_size: {}\n"
                    "  parallelism_config_dp_shard_size: {}\n",
                    plan.degrees.dp / shards, shards);
}

// Returns the precision. "no" is in quotes, because YAML 1.1 reads the plain word as false.
const char* mixed_precision(DType dtype) {
  switch (dtype) {
    case DType::kBFloat16: return "bf16";
    case DType::kFloat16: return "fp16";
    default: return "'no'";
  }
}

Result<std::string> accelerate_yaml(const PlanFile& file, const LaunchSize& size) {
  TPSIM_TRY_STATUS(check_launch_rules(kStack, file));
  const std::int64_t gpus = size.nodes * size.gpus_per_node;
  const char* kind = file.plan.zero > 0 ? "FSDP" : gpus > 1 ? "MULTI_GPU" : "'NO'";
  return fmt::format(
      "compute_environment: LOCAL_MACHINE\n"
      "distributed_type: {}\n"
      "{}"
      "machine_rank: 0\n"
      "mixed_precision: {}\n"
      "num_machines: {}\n"
      "num_processes: {}\n",
      kind, fsdp_text(file, size), mixed_precision(file.plan.dtype), size.nodes, gpus);
}

Result<ImportedPlan> import_accelerate(const std::vector<LaunchFile>& files,
                                       const ImportInputs& inputs) {
  TPSIM_TRY(const LaunchFile yaml, file_named(files, kAccelerateYamlFile));
  TPSIM_TRY(std::vector<FlatSetting> settings, flat_settings(yaml));
  const auto script = file_named(files, framework_of(kStack).files().front());
  if (script.ok()) {
    TPSIM_TRY(const LaunchCommand command, read_launch_command(*script, inputs));
    for (const LaunchOption& option : command.options) {
      settings.push_back(
          {option.key.substr(std::min<std::size_t>(2, option.key.size())), option.value, 0});
    }
  }
  return import_trainer(FlatReader(std::move(settings)), yaml, inputs);
}

class Accelerate final : public Framework {
 public:
  Accelerate() : Framework(kStack, Launcher::kAccelerate, kAccelerateYamlFile) {}

  bool runs(const std::string& stack) const override {
    return Framework::runs(stack) || is_version_of(stack, "pytorch-fsdp");
  }
  bool detects_settings(const std::vector<FlatSetting>& settings) const override {
    constexpr const char* kKeys[] = {"per_device_train_batch_size",
                                     "base_model",
                                     "distributed_type",
                                     "zero_optimization.stage",
                                     "model_name_or_path",
                                     "gradient_accumulation_steps",
                                     "micro_batch_size"};
    return std::any_of(std::begin(kKeys), std::end(kKeys),
                       [&](const char* key) { return has_key(settings, key); });
  }
  Result<ImportedPlan> read(const std::vector<LaunchFile>& files,
                            const ImportInputs& inputs) const override {
    TPSIM_TRY(ImportedPlan plan, import_accelerate(files, inputs));
    return with_environment(*this, files, inputs, std::move(plan));
  }
  Result<ImportedPlan> read_settings(const std::vector<FlatSetting>& settings,
                                     const LaunchFile& file,
                                     const ImportInputs& inputs) const override {
    return located(file, import_trainer(FlatReader(settings), file, inputs));
  }

  Result<std::vector<LaunchFile>> write(const PlanFile& file, const LaunchSize& size,
                                        const StackSpec& software) const override {
    TPSIM_TRY(std::string yaml, accelerate_yaml(file, size));
    const bool checkpoints = file.plan.recompute == Recompute::kFull && file.plan.zero == 0;
    LaunchOptions arguments = trainer_arguments(file, software.parts, checkpoints);
    // Without the option, accelerate reduces gradients after the last micro-batch only.
    if (file.plan.zero > 0 && software.training.gradient_sync == GradientSync::kEveryMicroBatch) {
      arguments.add(kAcceleratorConfig,
                    std::string(R"({"gradient_accumulation_kwargs": {"sync_each_batch": true}})"));
    }
    return std::vector<LaunchFile>{shell_file(kStack, file, size, arguments, ""),
                                   {kAccelerateYamlFile, std::move(yaml)}};
  }
  // accelerate launch does not read the rendezvous from its configuration file.
  std::string start_command(const ModelSpec&, const std::string&) const override {
    return fmt::format(
        "accelerate launch --config_file {} \\\n"
        "  --num_machines \"$NUM_NODES\" --num_processes \"$((NUM_NODES * GPUS_PER_NODE))\" \\\n"
        "  --rdzv_backend c10d --main_process_ip \"$MASTER_ADDR\" --main_process_port 6000 "
        "train.py \\\n"
        "  \"${{TRAIN_ARGS[@]}}\" \"$@\"\n",
        kAccelerateYamlFile);
  }

  std::string_view judge() const override { return "accelerate"; }
};

// Whether the parts are those of Liger's kernels. The Trainer's command line enables all of them or
// none: liger_kernel_config is a dictionary (training_args.py:925).
bool has_liger_kernels(const SoftwareParts& parts) {
  return parts.norm_kernel == KernelFusion::kFused && parts.rotary_kernel == RotaryKernel::kFused &&
         parts.activation_kernel == ActivationKernel::kFused &&
         parts.loss_head == LossHead::kChunked;
}

}  // namespace

LaunchOptions trainer_arguments(const PlanFile& file, const SoftwareParts& parts,
                                bool checkpoints) {
  const Plan& plan = file.plan;
  LaunchOptions options;
  options.add("--per_device_train_batch_size", plan.micro_batch);
  options.add("--gradient_accumulation_steps", micro_batches(plan));
  options.add("--max_length", file.model.seq);
  if (checkpoints) options.add("--gradient_checkpointing", "true");
  const bool is_third = parts.attention_kernel == AttentionKernel::kFlash3;
  const char* const flash = is_third ? "flash_attention_3" : "flash_attention_2";
  options.add("--attn_implementation", plan.attention == AttentionKind::kFlash ? flash : "eager");
  // The default depends on the version of PyTorch (OptimizerNames in training_args.py).
  const auto kind = file.parts.find(StackPart::kOptimizerKind);
  std::string_view name =
      parts.optimizer_kernel == KernelFusion::kFused ? "adamw_torch_fused" : "adamw_torch";
  const bool has_name =
      kind != file.parts.end() &&
      held(LaunchStack::kAccelerate, StackPart::kOptimizerKind, kind->second) == Held::kWritten;
  if (has_name) {
    const OptimizerRow& row = row_of(static_cast<OptimizerKind>(kind->second));
    std::string_view names = row.kind == OptimizerKind::kAdamW ? "" : row.names;
    if (!names.empty()) name = cut_off(names, " ");
  }
  options.add("--optim", std::string(name));
  if (parts.compile) options.add("--torch_compile", "true");
  if (has_liger_kernels(parts)) options.add("--use_liger_kernel", "true");
  return options;
}

const Framework& accelerate() {
  static const Accelerate framework;
  return framework;
}

}  // namespace tpsim

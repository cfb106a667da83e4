// Writes and reads files for Hugging Face's Trainer with DeepSpeed: DeepSpeed's JSON, and the
// arguments of the training script, which name the JSON.
//
// Sources: deepspeed/runtime/config.py, runtime/engine.py and runtime/zero/config.py of edaa72212;
// transformers' training_args.py and integrations/deepspeed.py.
#include "core/json/json_document.h"
#include "frameworks/deepspeed/deepspeed_config.h"
#include "frameworks/huggingface/trainer_arguments.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/launcher.h"

namespace tpsim {
namespace {

JsonValue zero_section(const Plan& plan, const TrainingOptions& training) {
  JsonValue zero = json_object({{"stage", plan.zero}});
  if (plan.zero == 0) return zero;
  zero.set("overlap_comm", training.overlap_gradient_reduction);
  if (offloads_optimizer(plan)) {
    zero.set("offload_optimizer", json_object({{"device", "cpu"}}));
  }
  if (offloads_weights(plan)) zero.set("offload_param", json_object({{"device", "cpu"}}));
  if (plan.zero == 3 && !training.overlap_parameter_gather) zero.set(kPrefetchKey, 0);
  return zero;
}

// Adds how weights are stored: 16 bits with an fp32 copy, 16 bits alone, or fp32 with autocast.
void add_precision(const Plan& plan, const SoftwareParts& parts, JsonValue& json) {
  if (plan.dtype == DType::kFloat32) return;
  if (parts.master_weights == MasterWeights::kAutocast) {
    const bool is_bf16 = plan.dtype == DType::kBFloat16;
    json.set(kAutocastSection,
             json_object({{"enabled", true}, {"dtype", is_bf16 ? "bfloat16" : "float16"}}));
    return;
  }
  JsonValue section = json_object({{"enabled", true}});
  if (parts.master_weights == MasterWeights::kNone) {
    section.set(kBf16Masters, true);
    section.set(kBf16States, true);
  }
  json.set(std::string(name_of(plan.dtype)), std::move(section));
}

// Checks that the optimizer of 16-bit weights without an fp32 copy is one that ZeRO has
// (runtime/base_optimizer.py, _configure_master_weights).
Status check_masters(const Plan& plan, const SoftwareParts& parts) {
  const bool lacks_copy = parts.master_weights == MasterWeights::kNone;
  const bool is_narrow = parts.optimizer_dtype == DType::kBFloat16;
  const bool runs = plan.dtype == DType::kBFloat16 && plan.gradient_dtype == DType::kBFloat16 &&
                    plan.zero > 0 && !offloads_optimizer(plan);
  if (lacks_copy == is_narrow && (!lacks_copy || runs)) return Ok{};
  return cannot_express(
      LaunchStack::kDeepSpeed,
      lacks_copy ? "16-bit weights without an fp32 copy in this plan"
                 : "moments in 16 bits in this plan",
      "its weights, gradients and moments are in bf16 together, with ZeRO on the GPU: use "
      "--dtype bf16 --gradient-dtype bf16 --master-weights none --optimizer-dtype bf16 --zero 1, 2 "
      "or 3 (deepspeed/runtime/base_optimizer.py:484)");
}

Result<std::string> deepspeed_trainer_json(const PlanFile& file, const StackSpec& software) {
  TPSIM_TRY_STATUS(check_launch_rules(LaunchStack::kDeepSpeed, file));
  const Plan& plan = file.plan;
  TPSIM_TRY_STATUS(check_masters(plan, software.parts));
  JsonValue json = json_object({
      {"train_batch_size", plan.global_batch},
      {"train_micro_batch_size_per_gpu", plan.micro_batch},
      {"gradient_accumulation_steps", micro_batches(plan)},
      {"gradient_clipping", 1.0},
      {"zero_optimization", zero_section(plan, software.training)},
      {"data_types",
       json_object({{"grad_accum_dtype", std::string(name_of(plan.gradient_dtype))}})},
  });
  add_precision(plan, software.parts, json);
  // Without the key, gradients are reduced in the dtype of the weights (runtime/engine.py:1405).
  const bool is_wide = software.training.reduce_dtype == ReduceDtype::kAsAddedUp;
  if (plan.zero >= 2 && is_wide && plan.gradient_dtype != plan.dtype) {
    json.set("communication_data_type", std::string(name_of(plan.gradient_dtype)));
  }
  if (plan.degrees.tp > 1) {
    json.set("tensor_parallel", json_object({{"autotp_size", plan.degrees.tp}}));
  }
  return to_text(json);
}

class DeepSpeedTrainer final : public Framework {
 public:
  DeepSpeedTrainer()
      : Framework(LaunchStack::kDeepSpeed, Launcher::kDeepSpeed,
                  std::string(kDeepSpeedConfigFile)) {}

  bool detects_script(std::string_view text) const override {
    return text.find("--per_device_train_batch_size") != std::string_view::npos &&
           text.find("--deepspeed ") != std::string_view::npos;
  }
  Result<ImportedPlan> read(const std::vector<LaunchFile>& given,
                            const ImportInputs& inputs) const override {
    TPSIM_TRY(const LaunchFile config, file_named(given, kDeepSpeedConfigFile));
    ImportInputs with_config = inputs;
    with_config.more.push_back({config.name, config.text});  // the script names it without a folder
    TPSIM_TRY(ImportedPlan plan, read_script(*this, given, with_config));
    return with_environment(*this, given, inputs, std::move(plan));
  }

  Result<std::vector<LaunchFile>> write(const PlanFile& file, const LaunchSize& size,
                                        const StackSpec& software) const override {
    TPSIM_TRY(std::string json, deepspeed_trainer_json(file, software));
    LaunchOptions options =
        trainer_arguments(file, software.parts, file.plan.recompute == Recompute::kFull);
    // With --bf16 the Trainer demands section "bf16", which torch.autocast excludes.
    if (software.parts.master_weights != MasterWeights::kAutocast) {
      if (file.plan.dtype == DType::kBFloat16) options.add("--bf16", "true");
      if (file.plan.dtype == DType::kFloat16) options.add("--fp16", "true");
    }
    options.add("--deepspeed", std::string(kDeepSpeedConfigFile));
    return std::vector<LaunchFile>{shell_file(stack(), file, size, options, ""),
                                   {files().back(), std::move(json)}};
  }
  std::string start_command(const ModelSpec&, const std::string& job) const override {
    return torchrun_command(job, "train.py");
  }

  std::string_view judge() const override { return "deepspeed"; }
};

}  // namespace

const Framework& deepspeed_trainer() {
  static const DeepSpeedTrainer framework;
  return framework;
}

}  // namespace tpsim

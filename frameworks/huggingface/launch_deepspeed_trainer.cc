// Writes and reads files for Hugging Face's Trainer with DeepSpeed: DeepSpeed's JSON, and the
// arguments of the training script, which name the JSON.
//
// Sources: deepspeed/runtime/config.py, runtime/engine.py and runtime/zero/config.py of edaa72212;
// transformers' training_args.py and integrations/deepspeed.py.
#include "core/json/json_document.h"
#include "frameworks/huggingface/trainer_arguments.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/launcher.h"

namespace tpsim {
namespace {

JsonValue zero_section(const Plan& plan, const TrainingOptions& training) {
  JsonValue zero = json_object({{"stage", plan.zero}});
  if (plan.zero == 0) return zero;
  zero.set("overlap_comm", training.overlap_gradient_reduction);
  if (plan.offload != Offload::kNone) {
    zero.set("offload_optimizer", json_object({{"device", "cpu"}}));
  }
  if (plan.zero == 3 && !training.overlap_parameter_gather) zero.set(kPrefetchKey, 0);
  return zero;
}

Result<std::string> deepspeed_trainer_json(const PlanFile& file, const StackSpec& software) {
  TPSIM_TRY_STATUS(check_launch_rules(LaunchStack::kDeepSpeed, file));
  const Plan& plan = file.plan;
  JsonValue json = json_object({
      {"train_batch_size", plan.global_batch},
      {"train_micro_batch_size_per_gpu", plan.micro_batch},
      {"gradient_accumulation_steps", micro_batches(plan)},
      {"gradient_clipping", 1.0},
      {"zero_optimization", zero_section(plan, software.training)},
      {"data_types",
       json_object({{"grad_accum_dtype", std::string(name_of(plan.gradient_dtype))}})},
  });
  if (plan.dtype != DType::kFloat32) {
    json.set(std::string(name_of(plan.dtype)), json_object({{"enabled", true}}));
  }
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
    if (file.plan.dtype == DType::kBFloat16) options.add("--bf16", "true");
    if (file.plan.dtype == DType::kFloat16) options.add("--fp16", "true");
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

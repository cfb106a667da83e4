// Writes and reads files for Hugging Face's Trainer with DeepSpeed: DeepSpeed's JSON, and the
// arguments of the training script, which name the JSON.
//
// Sources: deepspeed/runtime/config.py, runtime/engine.py and runtime/zero/config.py of edaa72212;
// transformers' training_args.py and integrations/deepspeed.py.
#include "core/json/json_document.h"
#include "frameworks/launch/framework_files.h"
#include "frameworks/launch/launcher.h"

namespace tpsim {
namespace {

JsonValue zero_section(const Plan& plan, const TrainingOptions& training) {
  JsonValue zero = json_object({{"stage", plan.zero}});
  if (plan.zero == 0) return zero;
  zero.set("overlap_comm", training.overlap_gradient_reduction);
  return zero;
}

}  // namespace

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
  if (plan.degrees.tp > 1) {
    json.set("tensor_parallel", json_object({{"autotp_size", plan.degrees.tp}}));
  }
  return to_text(json);
}

LaunchOptions deepspeed_trainer_arguments(const PlanFile& file, const SoftwareParts& parts) {
  LaunchOptions options = trainer_arguments(file, parts, file.plan.recompute == Recompute::kFull);
  if (file.plan.dtype == DType::kBFloat16) options.add("--bf16", "true");
  if (file.plan.dtype == DType::kFloat16) options.add("--fp16", "true");
  options.add("--deepspeed", std::string(kDeepSpeedConfigFile));
  return options;
}

}  // namespace tpsim

// Microsoft's Megatron-DeepSpeed: the arguments of Megatron-LM, DeepSpeed's engine and JSON.
#include <algorithm>

#include "core/text.h"
#include "stacks/deepspeed_config.h"
#include "stacks/launch_settings.h"

namespace tpsim {

bool speaks_megatron_core(const std::vector<LaunchOption>& options) {
  constexpr std::string_view kCore =
      "--no-pipeline-parallel --normalization --swiglu --disable-bias-linear --use-flash-attn "
      "--num-query-groups --untie-embeddings-and-output-weights";
  return std::any_of(options.begin(), options.end(), [&](const LaunchOption& one) {
    return matches_any(one.name, kCore) ||
           (one.name == "--position-embedding-type" && one.value == "rope");
  });
}

// Microsoft's fork: the layers of Megatron-LM, DeepSpeed's engine, which has a pipeline unless told
// otherwise.
Result<Plan> plan_of_forked_deepspeed(const ShellOptions& shell, const LaunchFile& config_file,
                                      const ModelSpec& model) {
  TPSIM_TRY(const DeepSpeedConfig config, read_deepspeed_config(config_file));
  TPSIM_TRY_STATUS(check_batches(config, config_file));
  constexpr std::string_view kEngine =
      "--deepspeed --deepspeed-activation-checkpointing --deepspeed-config --zero-stage "
      "--no-pipeline-parallel --cpu-optimizer";
  LaunchOptionReader engine([&] {
    std::vector<LaunchOption> own;
    for (const LaunchOption& option : shell.options) {
      if (matches_any(option.name, kEngine)) own.push_back(option);
    }
    return own;
  }());
  ShellOptions layers = shell;
  std::erase_if(layers.options, [&](const LaunchOption& one) { return engine.has(one.name); });
  const bool fused = has_option(layers.options, "--use-flash-attn");
  if (!fused) layers.options.push_back({"--attention-backend", "unfused"});
  for (LaunchOption& option : layers.options) {
    if (option.name == "--normalization" && option.value == "rmsnorm") option.value = "RMSNorm";
    if (option.name == "--normalization" && option.value == "layernorm") option.value = "LayerNorm";
  }
  TPSIM_TRY(Plan plan, plan_of_megatron(LaunchStack::kMegatronLm, layers, model));
  engine.flag("--deepspeed");
  engine.flag("--deepspeed-activation-checkpointing");
  engine.drop("--deepspeed-config");
  const bool pipelines = !engine.flag("--no-pipeline-parallel");
  if (engine.has("--zero-stage")) engine.expect("--zero-stage", config.stage);
  if (engine.flag("--cpu-optimizer") != config.offloads) {
    engine.fail("--cpu-optimizer and offload_optimizer in DeepSpeed's JSON go together");
  }
  plan.zero = static_cast<int>(config.stage);
  if (plan.dtype == DType::kBFloat16 && plan.zero == 0 && pipelines) plan.zero = 1;
  plan.offload = config.offloads ? Offload::kOptimizer : Offload::kNone;
  plan.gradient_dtype = plan.dtype == DType::kFloat16 ? DType::kFloat16 : DType::kFloat32;
  DeepSpeedConfig judged = config;
  if (!pipelines) judged.stage = 0;
  check_config(engine, judged, plan);
  TPSIM_TRY_STATUS(engine.finish());
  TPSIM_TRY_STATUS(validate(plan, model));
  return plan;
}

}  // namespace tpsim

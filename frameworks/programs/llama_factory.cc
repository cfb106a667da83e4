// Imports configurations of LLaMA-Factory on Megatron-Core (mcore_adapter): one YAML with keys of
// the Trainer and of Megatron. Source of rules and defaults:
// src/llamafactory/hparams/megatron_args.py and train/mca/workflow.py of hiyouga/LLaMA-Factory at
// ff6d4d1.
#include <fmt/format.h>

#include "core/base/text.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

constexpr ProgramSetting kFactoryRows[] = {
    {"model_name_or_path", "@model"},
    {"cutoff_len", "@length"},
    {"per_device_train_batch_size", "@micro-batch"},
    {"gradient_accumulation_steps", "@accumulation"},
    {"bf16", "bf16"},
    {"fp16", "fp16"},
    {"bias_activation_fusion", "bias-swiglu-fusion"},
    {"recompute_granularity", "recompute-granularity"},
    {"flash_attn attention_backend", "@core"},
};

constexpr LeftOver kFactoryRefused[] = {
    {"finetuning_type", kAllWeights, "full"},
};

constexpr std::string_view kFactoryOutside =
    "do_train do_eval stage dataset* template* preprocessing_* output_dir num_train_epochs "
    "learning_rate logging_* save_* eval_* lr_* warmup_* report_to max_samples overwrite_* "
    "plot_loss trust_remote_code val_size dataloader_* max_steps weight_decay adam_* seed "
    "freeze_* image_* video_* resume_* ddp_* packing neat_packing use_mca run_name optim "
    "max_grad_norm calculate_per_token_loss";

void derive_factory(ProgramSettings& settings, LeftSettings&) {
  const std::int64_t replicas = settings.replicas();
  const std::int64_t pass =
      settings.number("@micro-batch", 1) * settings.number("@accumulation", 1);
  if (replicas > 0) settings.put("@global-batch", replicas * pass);
  settings.note(
      fmt::format("every sequence is predicted as {} tokens, the maximum length: shorter "
                  "samples take less time and memory, so both are upper bounds",
                  *settings.find("@length")));
}

constexpr TrainingProgram kFactory[] = {
    {.name = "LLaMA-Factory's Megatron",
     .file_keys = "model_name_or_path tensor_model_parallel_size finetuning_type",
     .settings = SettingsOf::kMegatron,
     .stack = "megatron-core",
     .rows = kFactoryRows,
     .defaults = "@length=2048 @micro-batch=8 @accumulation=1 attention-backend=flash "
                 "attention-dropout=0 hidden-dropout=0 moe-token-dispatcher-type=alltoall",
     .refused = kFactoryRefused,
     .outside = kFactoryOutside,
     .keeps_rest = true,
     .derive = derive_factory},
};

}  // namespace

std::span<const TrainingProgram> llama_factory_programs() { return kFactory; }

}  // namespace tpsim

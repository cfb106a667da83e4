// Imports the example trainers of DeepSpeed-Chat and of AWS. Sources: dschat/utils/ds_utils.py and
// main.py of each step in DeepSpeedExamples at 45b4b71; pytorch/FSDP/src of
// awsome-distributed-training at 7217859.
#include <fmt/format.h>

#include "core/base/text.h"
#include "core/model/model_json.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

constexpr LeftOver kChatRefused[] = {
    {"lora_dim actor_lora_dim only_optimize_lora", kAllWeights},
    {"offload actor_offload", "tpsim models weights on the GPU only"},
    {"unsupervised_dataset_name", "tpsim models one loss for all sequences only"},
};

constexpr ProgramSetting kChatRows[] = {
    {"model_name_or_path actor_model_name_or_path", "@model"},
    {"per_device_train_batch_size per_device_training_batch_size", "per_device_train_batch_size"},
    {"max_seq_len max_prompt_seq_len max_answer_seq_len", "@length"},
    {"zero_stage actor_zero_stage", "deepspeed_config.zero_stage"},
    {"dtype", "fp16", "fp16", "true"},
    {"dtype", "bf16", "bf16", "true"},
    {"gradient_checkpointing actor_gradient_checkpointing", "gradient_checkpointing"},
    {"gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"critic_model_name_or_path", "@critic"},
};

constexpr std::string_view kChatOutside =
    "data_* per_device_eval_batch_size per_device_generation_batch_size generation_batches "
    "ppo_epochs critic_* actor_* learning_rate weight_decay num_train_epochs lr_scheduler_type "
    "num_warmup_steps seed local_rank deepspeed output_dir dropout num_padding_at_beginning beta "
    "label_smoothing lora_* enable_* tensorboard_path print_* add_eot_token inference_tp_size "
    "release_inference_cache pin_parameters tp_gather_partition_size offload_reference_model "
    "compute_fp32_loss unpin_* align_overflow mixed_precision_zeropp";

// Step 2 trains on pairs of answers. The folder of the script names the step.
Result<std::vector<FlatSetting>> expand_chat(std::vector<FlatSetting> settings,
                                             const LaunchFile& file, const ImportInputs&,
                                             ProgramSettings& out) {
  if (path_of(file).find("step2") != std::string::npos) out.put("rl", std::string("dpo"));
  return settings;
}

void derive_chat(ProgramSettings& settings, LeftSettings&) {
  if (settings.is("bf16", "true")) settings.erase("fp16");
  if (!settings.has("@critic")) return;
  settings.note(
      "only the actor's update is predicted; generation, rewards, other models' updates are not");
}

constexpr LeftOver kAwsRefused[] = {
    {"cpu_offload", "tpsim models weights on the GPU only", "0"},
    {"offload_activations", "tpsim models activations on the GPU only", "0"},
};

constexpr ProgramSetting kAwsRows[] = {
    {"train_batch_size", "per_device_train_batch_size"},
    {"max_context_width", "@length"},
    {"activation_checkpointing", "gradient_checkpointing"},
    {"bf16", "bf16"},
    {"sharding_strategy", "fsdp", "full", "full_shard"},
    {"sharding_strategy", "fsdp", "hybrid", "hybrid_shard"},
    {"model_type hidden_width num_layers num_heads num_key_value_heads intermediate_size "
     "llama_intermediate_size vocab_size",
     "@sizes"},  // read by expand_aws()
};

constexpr std::string_view kAwsOutside =
    "val_batch_size max_steps max_training_steps seed same_seed grad_clip weight_decay beta1 beta2 "
    "logging_freq tensorboard_dir resid_pdrop embd_pdrop attn_pdrop summary_first_pdrop "
    "initializer_range rotary_* activation_loading_horizon limit_all_gathers lr lr_decay_* min_lr "
    "warmup plateau dataset dataset_config_name tokenizer resume_from_checkpoint checkpoint_* "
    "epochs validation_* nsys_*";

// Makes the model of the sizes in the arguments, as get_model_config() does.
Result<std::vector<FlatSetting>> expand_aws(std::vector<FlatSetting> settings,
                                            const LaunchFile& file, const ImportInputs&,
                                            ProgramSettings& out) {
  const auto size = [&](const char* key, const char* usual) {
    return setting_value(settings, key, usual);
  };
  const std::string heads = size("num_heads", "12");
  const std::string kind = size("model_type", "gpt_neox");
  if (!kind.starts_with("llama_v")) return settings;
  const std::string text = fmt::format(
      R"({{"model_type": "llama", "vocab_size": {}, "hidden_size": {}, "intermediate_size": {}, )"
      R"("num_hidden_layers": {}, "num_attention_heads": {}, "num_key_value_heads": {}, )"
      R"("max_position_embeddings": {}, "rms_norm_eps": 1e-5}})",
      size("vocab_size", "50432"), size("hidden_width", "768"),
      size("intermediate_size", size("llama_intermediate_size", "11008").c_str()),
      size("num_layers", "12"), heads, size("num_key_value_heads", heads.c_str()),
      size("max_context_width", "2048"));
  TPSIM_TRY(out.model, parse_model(text, path_of(file)));
  return settings;
}

constexpr TrainingProgram kExamples[] = {
    {.name = "DeepSpeed-Chat",
     .commands = "main",
     .marks = "data_split=*",
     .settings = SettingsOf::kTrainer,
     .stack = "deepspeed-zero3",
     .rows = kChatRows,
     .defaults = "deepspeed_config.zero_stage=0 fp16=true per_device_train_batch_size=16",
     .refused = kChatRefused,
     .outside = kChatOutside,
     .expand = expand_chat,
     .derive = derive_chat},
    {.name = "AWS's FSDP example",
     .commands = "train",
     .marks = "max_context_width=*",
     .settings = SettingsOf::kTrainer,
     .stack = "pytorch-fsdp",
     .rows = kAwsRows,
     .defaults = "per_device_train_batch_size=2 @length=2048 gradient_checkpointing=true bf16=true "
                 "fsdp=full_shard fsdp_version=1",
     .refused = kAwsRefused,
     .outside = kAwsOutside,
     .expand = expand_aws},
};

}  // namespace

std::span<const TrainingProgram> example_programs() { return kExamples; }

}  // namespace tpsim

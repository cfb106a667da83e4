// Imports commands of OpenRLHF, whose trainers all use DeepSpeed's ZeRO. Source of rules and
// defaults: openrlhf/cli/train_*.py of OpenRLHF/OpenRLHF at 3c3be62. Names of 2024, such as
// "--micro_train_batch_size", are read, too.
#include <fmt/format.h>

#include "core/base/text.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

constexpr LeftOver kOpenRlhfRefused[] = {
    {"ds.lora.rank lora_rank", kAllWeights},
    {"ds.load_in_4bit load_in_4bit", "tpsim models weights of 16 or 32 bits only"},
    {"optim actor.optim model.optim", kAdamState, kAdamNames},
};

constexpr ProgramSetting kOpenRlhfRows[] = {
    {"actor.model_name_or_path model.model_name_or_path pretrain", "@model"},
    {"actor.num_nodes actor_num_nodes", "@nodes"},
    {"actor.num_gpus_per_node actor_num_gpus_per_node", "@gpus-per-node"},
    {"train.micro_batch_size micro_train_batch_size", "per_device_train_batch_size"},
    {"train.batch_size train_batch_size", "@global-batch"},
    {"data.max_len max_len", "@length"},
    {"prompt_max_len generate_max_len", "@length"},
    {"ds.zero_stage zero_stage", "deepspeed_config.zero_stage"},
    {"ds.adam_offload adam_offload", "deepspeed_config.offload_optimizer_device", "true", "cpu"},
    {"ds.param_dtype param_dtype", "bf16", "bf16", "true"},
    {"ds.param_dtype param_dtype", "fp16", "fp16", "true"},
    {"ds.param_dtype param_dtype", "bf16", "fp32", "false"},
    {"bf16", "bf16"},
    {"actor.gradient_checkpointing_enable model.gradient_checkpointing_enable "
     "gradient_checkpointing",
     "gradient_checkpointing"},
    {"ds.packing_samples packing_samples", "packing"},
    {"ds.attn_implementation attn_implementation", "attn_implementation"},
    {"flash_attn", "attn_implementation", "true", "flash_attention_2"},
    {"ds.use_liger_kernel use_liger_kernel", "use_liger_kernel"},
    {"ds.ring_attn_size ring_attn_size", "@cp"},
    {"ds.tensor_parallel_size ds_tensor_parallel_size", "tensor_parallel_size"},
};

constexpr std::string_view kOpenRlhfOutside =
    "ckpt.* logger.* eval.* data.* rollout.* reward.* critic.* ref.* vllm.* algo.* train.* muon.* "
    "adam.* actor.* model.* ds.* lr_scheduler lr_warmup_ratio min_lr_ratio max_norm local_rank "
    "use_ms save_* logging_steps eval_* dataset* input_key output_key input_template "
    "apply_chat_template max_epochs max_samples learning_rate actor_learning_rate "
    "critic_learning_rate init_kl_coef load_checkpoint use_wandb wandb_* ref_* reward_* critic_* "
    "vllm_* colocate_* prompt_data* micro_rollout_batch_size rollout_batch_size "
    "n_samples_per_prompt normalize_reward remote_rm_url advantage_estimator use_kl_loss "
    "kl_estimator gamma lambd eps_clip* seed deepspeed_enable_sleep enable_prefix_caching "
    "num_episodes chosen_key rejected_key beta label_key async_train dynamic_filtering* adam_betas "
    "l2 warmup lr_* aux_loss_coef grad_accum_dtype overlap_comm zpg lora_alpha lora_dropout "
    "target_modules ipo nll_loss_coef disable_* gradient_checkpointing_use_reentrant tokenizer_*";

// Sets the batch sizes and, for PPO, the default number of GPUs. Trainers that compare answers
// (DPO, reward models) process two sequences per sample.
void derive_openrlhf(ProgramSettings& settings, LeftSettings& left) {
  const std::int64_t ring = settings.number("@cp", 1);
  if (ring > 1 && settings.is("deepspeed_config.zero_stage", "3")) {
    settings.note("ZeRO 3 with ring attention is predicted as FSDP 2");
  } else if (ring > 1) {
    left.refuse("ds.ring_attn_size", fmt::format("ds.ring_attn_size: {}", ring),
                "tpsim models ring attention with ZeRO 3 only");
  }
  const bool generates = settings.program.find("ppo") != std::string::npos;
  constexpr std::int64_t kUsualMicro = 8;  // train_sft.py; train_ppo_ray.py: 1
  std::int64_t micro = settings.number("per_device_train_batch_size", generates ? 1 : kUsualMicro);
  const bool compares = settings.program.find("dpo") != std::string::npos ||
                        settings.program.find("train_rm") != std::string::npos;
  if (compares) {
    micro *= 2;
    settings.put("@global-batch", 2 * settings.number("@global-batch", 1));
    settings.note(
        "a sample is a pair of sequences, so batch sizes are doubled; the forward pass of the "
        "reference model is not predicted");
  }
  settings.put("per_device_train_batch_size", micro);
  if (!generates) return;
  if (settings.gpus() == 0) settings.put("@gpus-per-node", 8);
  settings.note(
      "only the actor's update is predicted; generation, rewards, log-probabilities, other models' "
      "updates and weight transfers to the rollout are not");
}

constexpr TrainingProgram kOpenRlhf[] = {
    {.name = "OpenRLHF",
     .commands = "openrlhf.cli.train_*",
     .settings = SettingsOf::kTrainer,
     .stack = "deepspeed-zero3",
     .rows = kOpenRlhfRows,
     .defaults = "deepspeed_config.zero_stage=2 bf16=true attn_implementation=flash_attention_2 "
                 "@length=2048 @global-batch=128",
     .refused = kOpenRlhfRefused,
     .outside = kOpenRlhfOutside,
     .derive = derive_openrlhf},
};

}  // namespace

std::span<const TrainingProgram> openrlhf_programs() { return kOpenRlhf; }

}  // namespace tpsim

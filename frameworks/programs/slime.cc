// Imports commands of slime, which takes Megatron's arguments and its own for generation. Source of
// rules and defaults: slime/utils/arguments.py and slime/backends/megatron_utils/arguments.py of
// THUDM/slime at 624b824.
#include <fmt/format.h>

#include "core/base/text.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

constexpr std::string_view kSlimeOutside =
    "rollout_* eval_* sglang_* custom_* dynamic_sampling_* over_sampling_* partial_rollout "
    "mask_offpolicy_* buffer_* update_weight* colocate offload offload_* no_offload_* prompt_data "
    "input_key "
    "label_key tool_key metadata_key multimodal_keys apply_chat_template* rm_* reward_key "
    "group_rm num_rollout num_epoch num_steps_per_eval n_samples_per_eval_prompt balance_data "
    "balance_by_flops advantage_estimator use_kl_loss kl_* use_unbiased_kl entropy_coef eps_clip* "
    "use_tis tis_* use_rollout_* use_opsm opsm_* use_opd opd_* loss_type custom_loss_* ref_* "
    "allgather_cp check_weight_update_equal num_critic_only_steps critic_* disable_compute_* "
    "disable_grpo_* disable_rewards_* "
    "normalize_advantages use_wandb wandb_* use_tensorboard tb_* log_* save_debug_* load_debug_* "
    "load_forge_* dump_details debug_* ci_* use_fault_tolerance train_env_vars "
    "train_memory_margin_bytes model_name hf_checkpoint_* data_source_path start_rollout_id "
    "skip_eval_* use_routing_replay get_mismatch_metrics keep_old_actor use_slime_router "
    "slime_router_* router_* num_gpus_per_node no_save_optim save_hf only_train_params_* "
    "log_probs_* use_session_* train_backend reset_optimizer_states memory_* profile_* "
    "disable_rollout_* loss_mask_type data_pad_size_multiplier qkv_format megatron_to_hf_mode "
    "attention_output_gate rollout_num_gpus* max_weight_staleness true_on_policy_mode gamma lambd "
    "lr_* min_lr weight_decay adam_* use_dynamic_global_batch_size context_parallel_* "
    "enable_mtp_training overlap_cpu_optimizer_d2h_h2d post_self_attn_layernorm post_mlp_layernorm";

constexpr LeftOver kSlimeRefused[] = {
    {"freeze_params_name_list only_train_params_name_list", kAllWeights},
};

constexpr ProgramSetting kSlimeRows[] = {
    {"actor_num_nodes", "@nodes"},
    {"actor_num_gpus_per_node", "@gpus-per-node"},
    {"hf_checkpoint", "@model"},
    {"use_dynamic_batch_size", "@dynamic"},
    {"max_tokens_per_gpu", "@tokens"},
    {"rollout_max_response_len", "@response"},
    {"rollout_max_prompt_len", "@prompt"},
    {"rollout_max_context_len", "@context"},
    {"rollout_batch_size", "@prompts"},
    {"n_samples_per_prompt", "@samples"},
    {"num_steps_per_rollout", "@steps"},
    {"global_batch_size", "@global-batch"},
    {"micro_batch_size", "@micro-batch"},
    {"seq_length", "@seq"},
    {"loss_type", "@loss"},
    {"context_parallel_size", "context-parallel-size"},
};

// Sets batch sizes and sequence length. slime packs samples of different lengths into
// --max-tokens-per-gpu tokens. The plan assumes that all samples have the stated maximum length.
void derive_slime(ProgramSettings& settings, LeftSettings&) {
  if (!settings.has("@global-batch") && settings.has("@prompts")) {
    settings.put("@global-batch", settings.number("@prompts", 1) * settings.number("@samples", 1) /
                                      settings.number("@steps", 1));
  }
  const std::int64_t tokens =
      settings.number("@tokens", 0) * settings.number("context-parallel-size", 1);
  const std::int64_t stated = settings.number("@response", 0) + settings.number("@prompt", 0);
  constexpr std::int64_t kUsualLength = 4096;  // Megatron's --seq-length, as set by slime
  std::int64_t length = settings.number("@context", stated);
  if (length == 0) length = settings.number("@seq", tokens > 0 ? tokens : kUsualLength);
  // Samples are padded so that context- and tensor-parallel ranks have equal parts.
  const std::int64_t cp = settings.number("context-parallel-size", 1);
  const std::int64_t parts =
      (cp > 1 ? 2 * cp : 1) * settings.number("tensor-model-parallel-size", 1);
  length = (length + parts - 1) / parts * parts;
  settings.put("@length", length);
  if (settings.is("@dynamic", "true") && tokens > 0) {
    settings.put_micro_batch_of(tokens);
  } else if (!settings.has("@micro-batch")) {
    settings.put("@micro-batch", 1);
  }
  settings.note(
      fmt::format("every sequence is predicted as {} tokens, the longest that the file allows: "
                  "shorter samples take less time and memory, so both are upper bounds",
                  length));
  if (settings.is("@loss", "sft_loss")) return;
  settings.note(
      "slime: only the actor's update is predicted; generation, rewards, log-probabilities and "
      "weight transfers to the rollout are not");
}

constexpr TrainingProgram kSlime[] = {
    {.name = "slime",
     .commands = "train, train_async, slime.train",
     .marks = "actor_num_gpus_per_node=* rollout_batch_size=* rollout_function_path=*",
     .settings = SettingsOf::kMegatron,
     .stack = "megatron-core",
     .rows = kSlimeRows,
     .defaults = "bf16=true use-distributed-optimizer=true moe-token-dispatcher-type=alltoall",
     .refused = kSlimeRefused,
     .outside = kSlimeOutside,
     .keeps_rest = true,
     .derive = derive_slime},
};

}  // namespace

std::span<const TrainingProgram> slime_programs() { return kSlime; }

}  // namespace tpsim

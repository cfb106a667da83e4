// Imports verl's settings: the update of an actor with FSDP or Megatron-Core, or supervised
// training. Source of rules and defaults: verl/trainer/config (ppo_trainer.yaml,
// ppo_megatron_trainer.yaml, sft_trainer.yaml, engine/*.yaml) and verl/workers of volcengine/verl
// at b178a3c.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

// Ignored settings. The plan includes only the actor's update: not data, generation, rewards, other
// models or logging, and not the offload of the actor's state between phases.
constexpr std::string_view kVerlOutside =
    "config_path config_name config_dir hydra.* algorithm.* critic.* reward_model.* reward.* "
    "custom_reward_function.* data.* trainer.* global_profiler.* profiler.* ray_kwargs.* "
    "ray_init.* transfer_queue.* rollout.* async_training.* actor_rollout_ref.rollout.* "
    "actor_rollout_ref.ref.* actor_rollout_ref.nccl_timeout actor_rollout_ref.hybrid_engine "
    "actor_rollout_ref.model.* actor_rollout_ref.actor.optim.* "
    "actor_rollout_ref.actor.policy_loss.* actor_rollout_ref.actor.kl_* "
    "actor_rollout_ref.actor.use_kl_loss actor_rollout_ref.actor.clip_* "
    "actor_rollout_ref.actor.entropy_* actor_rollout_ref.actor.calculate_* "
    "actor_rollout_ref.actor.loss_* actor_rollout_ref.actor.grad_clip "
    "actor_rollout_ref.actor.checkpoint.* actor_rollout_ref.actor.profiler.* "
    "actor_rollout_ref.actor.profile.* actor_rollout_ref.actor.shuffle "
    "actor_rollout_ref.actor.data_loader_seed actor_rollout_ref.actor.use_torch_compile "
    "actor_rollout_ref.actor.router_replay.* actor_rollout_ref.actor.tau_* "
    "actor_rollout_ref.actor.use_prefix_grouper actor_rollout_ref.actor.ppo_epochs "
    "actor_rollout_ref.actor.rollout_n actor_rollout_ref.actor.load_weight "
    "actor_rollout_ref.actor.fsdp_config.param_offload "
    "actor_rollout_ref.actor.fsdp_config.optimizer_offload "
    "actor_rollout_ref.actor.fsdp_config.* actor_rollout_ref.actor.megatron.param_offload "
    "actor_rollout_ref.actor.megatron.optimizer_offload "
    "actor_rollout_ref.actor.megatron.grad_offload "
    "actor_rollout_ref.actor.megatron.use_dist_checkpointing "
    "actor_rollout_ref.actor.megatron.dist_checkpointing_* actor_rollout_ref.actor.megatron.seed "
    "actor_rollout_ref.actor.megatron.use_mbridge actor_rollout_ref.actor.megatron.vanilla_mbridge "
    "actor_rollout_ref.actor.megatron.extra.* actor_rollout_ref.actor.megatron.load_weight "
    "actor_rollout_ref.actor.megatron.use_remove_padding "
    "actor_rollout_ref.actor.sum_pi_squared_checkpointing actor_rollout_ref.actor.freeze_* "
    "model_engine optim.* checkpoint.* model.* use_remove_padding engine.*";

constexpr const char* kOnHost = "tpsim models weights on the GPU only";
constexpr LeftOver kVerlRefused[] = {
    {"actor_rollout_ref.model.lora_rank actor_rollout_ref.model.lora.rank model.lora_rank "
     "model.lora.rank actor_rollout_ref.model.lora_adapter_path",
     kAllWeights},
    {"actor_rollout_ref.actor.fsdp_config.offload_policy model.fsdp_config.cpu_offload "
     "model.fsdp_config.offload_params engine.offload_policy",
     kOnHost},
    {"actor_rollout_ref.actor.optim.optimizer optim.optimizer", kAdamState, kAdamNames},
    {"actor_rollout_ref.model.tiled_mlp.enabled", "tpsim does not model tiled MLPs"},
};

constexpr const char* kActorNote =
    "only the actor's update is predicted; generation, rewards, log-probabilities, other models' "
    "updates and weight transfers to the rollout are not";

// Translates the settings of an actor, for both FSDP and Megatron.
constexpr ProgramSetting kVerlActorRows[] = {
    {"actor_rollout_ref.model.path", "@model"},
    {"trainer.nnodes", "@nodes"},
    {"trainer.n_gpus_per_node", "@gpus-per-node"},
    {"data.max_prompt_length", "@prompt"},
    {"data.max_response_length", "@response"},
    {"data.train_batch_size", "@prompts"},
    {"actor_rollout_ref.actor.ppo_mini_batch_size", "@mini"},
    {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "@micro"},
    {"actor_rollout_ref.actor.ppo_micro_batch_size", "@micro-of-all"},
    {"actor_rollout_ref.actor.use_dynamic_bsz", "@dynamic"},
    {"actor_rollout_ref.actor.ppo_max_token_len_per_gpu", "@tokens"},
    {"actor_rollout_ref.rollout.n", "@samples"},
    {"actor_rollout_ref.actor.strategy", "@strategy"},
    {"algorithm.adv_estimator", "@advantage"},
};

constexpr ProgramSetting kVerlFsdpRows[] = {
    {"actor_rollout_ref.model.enable_gradient_checkpointing", "gradient_checkpointing"},
    {"actor_rollout_ref.model.use_liger", "use_liger_kernel"},
    {"actor_rollout_ref.model.use_fused_kernels", "liger_fused_linear_cross_entropy"},
    {"actor_rollout_ref.model.use_remove_padding", "padding_free"},
    {"actor_rollout_ref.model.override_config.attn_implementation", "attn_implementation"},
    {"actor_rollout_ref.actor.fsdp_config.fsdp_size", "@shards"},
    {"actor_rollout_ref.actor.fsdp_config.reshard_after_forward",
     "fsdp_config.fsdp_reshard_after_forward"},
    {"actor_rollout_ref.actor.fsdp_config.model_dtype", "torch_dtype", "fp32 float32", "float32"},
    {"actor_rollout_ref.actor.fsdp_config.model_dtype", "torch_dtype", "bf16 bfloat16", "bfloat16"},
    {"actor_rollout_ref.actor.ulysses_sequence_parallel_size "
     "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size",
     "@cp"},
};

constexpr ProgramSetting kVerlMegatronRows[] = {
    {"actor_rollout_ref.actor.megatron.tensor_model_parallel_size", "tensor-model-parallel-size"},
    {"actor_rollout_ref.actor.megatron.pipeline_model_parallel_size",
     "pipeline-model-parallel-size"},
    {"actor_rollout_ref.actor.megatron.virtual_pipeline_model_parallel_size",
     "virtual-pipeline-model-parallel-size"},
    {"actor_rollout_ref.actor.megatron.context_parallel_size", "context-parallel-size"},
    {"actor_rollout_ref.actor.megatron.expert_model_parallel_size", "expert-model-parallel-size"},
    {"actor_rollout_ref.actor.megatron.expert_tensor_parallel_size", "expert-tensor-parallel-size"},
    {"actor_rollout_ref.actor.megatron.sequence_parallel", "sequence-parallel"},
    {"actor_rollout_ref.actor.megatron.use_distributed_optimizer", "use-distributed-optimizer"},
    {"actor_rollout_ref.actor.megatron.dtype", "bf16", "bfloat16", "true"},
    {"actor_rollout_ref.actor.megatron.dtype", "fp16", "float16", "true"},
    {"actor_rollout_ref.actor.megatron.override_ddp_config.*", "*"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.num_layers_in_first_pipeline_"
     "stage",
     "decoder-first-pipeline-num-layers"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.num_layers_in_last_pipeline_"
     "stage",
     "decoder-last-pipeline-num-layers"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.bias_activation_fusion",
     "bias-swiglu-fusion"},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.*", "*"},
    {"actor_rollout_ref.actor.optim.override_optimizer_config.optimizer_cpu_offload",
     "optimizer-cpu-offload"},
    {"actor_rollout_ref.actor.optim.override_optimizer_config.optimizer_offload_fraction",
     "@all-offloaded", "1 1. 1.0"},
    {"actor_rollout_ref.actor.optim.override_optimizer_config.optimizer_offload_fraction",
     "optimizer-offload-fraction"},
    {"actor_rollout_ref.actor.optim.override_optimizer_config.use_precision_aware_optimizer",
     "use-precision-aware-optimizer"},
    {"actor_rollout_ref.actor.optim.override_optimizer_config.overlap_cpu_optimizer_d2h_h2d",
     "overlap-cpu-optimizer-d2h-h2d"},
};

constexpr ProgramSetting kVerlSftRows[] = {
    {"model.partial_pretrain", "@model"},
    {"model.path", "@model"},
    {"trainer.nnodes", "@stated-nodes"},
    {"trainer.n_gpus_per_node", "@stated-gpus"},
    {"data.max_length", "@length"},
    {"data.train_batch_size", "@global-batch"},
    {"data.micro_batch_size_per_gpu", "@micro-batch"},
    {"data.micro_batch_size", "@micro-of-all"},  // until 2025
    {"data.use_dynamic_bsz", "@dynamic"},
    {"data.max_token_len_per_gpu", "@tokens"},
    {"model.enable_gradient_checkpointing", "gradient_checkpointing"},
    {"model.use_liger", "use_liger_kernel"},
    {"use_remove_padding model.use_remove_padding", "padding_free"},
    {"model.fsdp_config.model_dtype engine.model_dtype", "torch_dtype", "fp32 float32", "float32"},
    {"model.fsdp_config.model_dtype engine.model_dtype", "torch_dtype", "bf16 bfloat16",
     "bfloat16"},
    {"ulysses_sequence_parallel_size engine.ulysses_sequence_parallel_size", "@cp"},
    {"engine.fsdp_size", "@shards"},
};

// Sets the numbers of sequences per step and per micro-batch. verl divides the mini-batch (prompts
// x answers) among the data-parallel ranks (workers/fsdp_workers.py).
void derive_actor(ProgramSettings& settings, std::int64_t replicas) {
  constexpr std::int64_t kUsual = 512;
  const std::int64_t prompt = settings.number("@prompt", kUsual);
  const std::int64_t length = prompt + settings.number("@response", kUsual);
  settings.put("@length", length);
  constexpr std::int64_t kUsualMini = 256;
  std::int64_t batch = settings.number("@mini", kUsualMini) * settings.number("@samples", 1);
  if (replicas > 0) batch = std::max<std::int64_t>(1, batch / replicas) * replicas;
  settings.put("@global-batch", batch);
  constexpr std::int64_t kUsualTokens = 16384;
  if (settings.is("@dynamic", "true")) {
    // Context-parallel ranks share the tokens of a micro-batch.
    const std::int64_t cp = settings.number("@cp", 1) * settings.number("context-parallel-size", 1);
    settings.put_micro_batch_of(cp * settings.number("@tokens", kUsualTokens));
  } else if (settings.has("@micro")) {
    settings.put("@micro-batch", settings.number("@micro", 1));
  } else if (settings.has("@micro-of-all") && replicas > 0) {
    settings.put("@micro-batch",
                 std::max<std::int64_t>(1, settings.number("@micro-of-all", 1) / replicas));
  } else {
    settings.open.ask({"the file does not state the actor's micro-batch",
                       "--set actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=N"});
  }
  const std::string* const advantage = settings.find("@advantage");
  if (advantage == nullptr || *advantage == "gae") {
    settings.note("a critic is trained too (adv_estimator gae); its update is not predicted");
  }
}

void put_shards(ProgramSettings& settings) {
  const std::int64_t shards = settings.number("@shards", 0);
  const std::int64_t gpus = settings.gpus();
  if (shards < 1 || gpus <= shards || gpus % shards != 0) return;
  settings.put("dp_shard_size", shards);
  settings.put("dp_replicate_size", gpus / shards);
}

void derive_verl_fsdp(ProgramSettings& settings, LeftSettings&) {
  put_shards(settings);
  derive_actor(settings, settings.gpus() / settings.number("@cp", 1));
}

void derive_verl_megatron(ProgramSettings& settings, LeftSettings&) {
  derive_actor(settings, settings.replicas());
  settings.note(
      fmt::format("every sequence is predicted as {} tokens, the maximum length: shorter "
                  "samples take less time and memory, so both are upper bounds",
                  *settings.find("@length")));
}

void derive_verl_sft(ProgramSettings& settings, LeftSettings&) {
  put_shards(settings);
  if (settings.gpus() == 0 && settings.has("@stated-gpus")) {
    settings.put("@gpus", settings.number("@stated-gpus", 1) * settings.number("@stated-nodes", 1));
  }
  if (settings.has("@micro-batch")) return;
  constexpr std::int64_t kUsualMicro = 4;
  const std::int64_t replicas = settings.gpus() / settings.number("@cp", 1);
  const std::int64_t of_all = settings.number("@micro-of-all", 0);
  settings.put("@micro-batch", of_all > 0 && replicas > 0
                                   ? std::max<std::int64_t>(1, of_all / replicas)
                                   : kUsualMicro);
}

constexpr TrainingProgram kVerl[] = {
    {.name = "verl",
     .commands = "verl.trainer.*, main_dapo, recipe.*",
     .marks = "config_name=ppo_megatron* config_name=dapo_megatron* "
              "actor_rollout_ref.actor.strategy=megatron model_engine=megatron",
     .file_keys = "actor_rollout_ref.actor.*",
     .settings = SettingsOf::kMegatron,
     .stack = "megatron-core",
     .rows = kVerlMegatronRows,
     .shared_rows = kVerlActorRows,
     .defaults = "sequence-parallel=true use-distributed-optimizer=true bf16=true "
                 "attention-backend=flash attention-dropout=0 hidden-dropout=0 "
                 "moe-token-dispatcher-type=alltoall moe-grouped-gemm=true",
     .refused = kVerlRefused,
     .outside = kVerlOutside,
     .note = kActorNote,
     .derive = derive_verl_megatron},
    {.name = "verl",
     .commands = "verl.trainer.fsdp_sft_trainer, verl.trainer.sft_trainer, "
                 "verl.trainer.sft_trainer_ray",
     .file_keys = "model.partial_pretrain data.*",
     .settings = SettingsOf::kTrainer,
     .stack = "pytorch-fsdp",
     .rows = kVerlSftRows,
     .defaults = "@length=1024 @global-batch=256 gradient_checkpointing=true "
                 "bf16=true fsdp_version=2 attn_implementation=flash_attention_2",
     .refused = kVerlRefused,
     .outside = kVerlOutside,
     .derive = derive_verl_sft},
    {.name = "verl",
     .commands = "verl.trainer.*, main_dapo, recipe.*",
     .marks = "actor_rollout_ref.*",
     .file_keys = "actor_rollout_ref.actor.*",
     .settings = SettingsOf::kTrainer,
     .stack = "pytorch-fsdp",
     .rows = kVerlFsdpRows,
     .shared_rows = kVerlActorRows,
     .defaults = "gradient_checkpointing=true bf16=true fsdp_version=1 "
                 "attn_implementation=flash_attention_2",
     .refused = kVerlRefused,
     .outside = kVerlOutside,
     .note = kActorNote,
     .derive = derive_verl_fsdp},
};

}  // namespace

std::span<const TrainingProgram> verl_programs() { return kVerl; }

}  // namespace tpsim

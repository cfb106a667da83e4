// Imports commands of ms-swift: "swift" trains with Hugging Face's Trainer, "megatron" with
// Megatron-Core. Source of rules and defaults: swift/arguments, swift/trainers/arguments.py and
// swift/megatron/arguments/megatron_args.py of modelscope/ms-swift at 3602360.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "frameworks/huggingface/adapter_settings.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

// Ignored settings of both commands: data, generation, rewards, checkpoints and logging.
constexpr std::string_view kSwiftOutside =
    "dataset* split_dataset_ratio load_from_cache_file cached_* truncation_strategy loss_scale "
    "use_chat_template agent_template system response_prefix add_version enable_dft_loss "
    "enable_channel_loss vllm_* use_vllm sglang_* reward_* num_generations temperature top_k top_p "
    "repetition_penalty log_* num_iterations epsilon* steps_per_generation generation_batch_size "
    "num_infer_workers sleep_level offload_model offload_optimizer offload_bridge "
    "move_model_batches delta dynamic_sample max_resample_times overlong_filter ref_model* "
    "ref_adapters model_author model_name model_type model_revision create_checkpoint_symlink "
    "check_model save_only_model router_aux_loss_coef acc_strategy streaming interleave_prob "
    "stopping_strategy shuffle_buffer_size custom_* external_plugins use_hf lazy_tokenize "
    "val_dataset* columns strict max_new_tokens template* norm_bbox data_seed stop_words loss_type "
    "beta rpo_alpha desirable_weight undesirable_weight max_epochs num_train_epochs output_dir "
    "save_* eval_* no_save_* no_load_* dataloader_* logging_* report_to tensorboard_* wandb_* "
    "swanlab_* seed lr* min_lr* learning_rate warmup_* weight_decay adam_* train_iters "
    "train_epochs finetune callbacks packing_cache packing_length packing_num_proc ddp_* "
    "group_by_length num_labels task_type new_special_tokens attn_impl_* advantage_estimator "
    "kl_in_reward scale_rewards importance_sampling_level async_generate teacher_model* lmbda "
    "sft_alpha seq_kd gkd_* multi_turn* max_turns completion_length_* ds3_gather_for_generation "
    "resume_* ignore_args_error deepspeed_autotp_* train_dataloader_shuffle check_latest* hub_* "
    "push_to_hub local_repo_path device_map max_memory rope_scaling_* init_* initialization "
    "perform_initialization use_cpu_initialization max_shard_size safe_serialization "
    "use_logits_to_keep gc_collect_after_offload merge_lora target_* lora_* modules_to_save "
    "use_rslora bnb_4bit_* load_args rollout_importance_sampling_* soft_* sync_ref_model cosine_* "
    "repetition_* vit_* aligner_lr freeze_vit freeze_aligner max_pixels min_pixels fps* image_* "
    "videos_* metric greater_is_better metric_for_best_model bridge_backend megatron_extra_kwargs "
    "language_model_only rlhf_config_* chosen_* rejected_* reference_free label_smoothing "
    "undesirable* off_policy_* top_entropy_quantile real_tau sapo_* fipo_* remove_unused_columns";

constexpr LeftOver kSwiftRefused[] = {
    {"tuner_type train_type sft_type", kAllWeights, "full lora"},
    {"freeze_llm freeze_parameters freeze_parameters_ratio trainable_parameters", kAllWeights,
     "0.0 0. 0"},
    {"quant_method", "tpsim models frozen weights of bitsandbytes only", "bnb"},
    {"galore_* use_galore lisa_* lorap_* use_dora", kAllWeights, "false"},
    {"sequence_parallel_size", "tpsim models ms-swift's Trainer with data parallelism only", "1"},
};

constexpr ProgramSetting kSwiftAdapterRows[] = {
    {"tuner_type train_type sft_type", "@tuner"},
    {"lora_rank", "@part.lora_rank"},
    {"lora_alpha", "@part.lora_alpha"},
    {"lora_dropout", "@dropout"},
    {"target_modules", "@targets"},
    {"use_rslora", "@part.lora_scaling", "true", "rslora"},
    {"use_rslora", "@part.lora_scaling", "false", "plain"},
    {"quant_bits", "@bits"},
    {"load_in_4bit", "@bits", "true", "4"},
    {"load_in_8bit", "@bits", "true", "8"},
};

constexpr ProgramSetting kSwiftRows[] = {
    {"model model_id_or_path", "@model"},
    {"torch_dtype", "bf16", "bfloat16", "true"},
    {"torch_dtype", "fp16", "float16", "true"},
    {"torch_dtype", "bf16", "float32", "false"},
    {"max_length", "@length"},
    {"max_completion_length", "@completion"},
    {"rlhf_type", "@rlhf"},
    // DeepSpeed presets of ms-swift, such as swift/config/zero2_offload.json.
    {"deepspeed", "deepspeed_config.zero_stage", "zero0", "0"},
    {"deepspeed", "deepspeed_config.zero_stage", "zero1", "1"},
    {"deepspeed", "deepspeed_config.zero_stage", "zero2 zero2_offload", "2"},
    {"deepspeed", "deepspeed_config.zero_stage", "zero3 zero3_offload", "3"},
    {"deepspeed", "deepspeed_config.offload_optimizer_device", "zero2_offload zero3_offload",
     "cpu"},
    {"deepspeed", "deepspeed_config.offload_param_device", "zero3_offload", "cpu"},
    {"deepspeed", "deepspeed"},
    {"fsdp", "fsdp_version", "fsdp2", "2"},
    {"fsdp", "fsdp"},
    {"attn_impl", "attn_implementation", "flash_attn flash_attention_2 flash_attention_3",
     "flash_attention_2"},
    {"attn_impl", "attn_implementation"},
};

constexpr ProgramSetting kSwiftMegatronRows[] = {
    {"model", "@model"},
    {"load mcore_model", "@load"},
    {"torch_dtype", "bf16", "bfloat16", "true"},
    {"torch_dtype", "fp16", "float16", "true"},
    {"torch_dtype", "bf16", "float32", "false"},
    {"max_length", "@length"},
    {"seq_length", "@seq"},
    {"max_completion_length", "@completion"},
    {"rlhf_type", "@rlhf"},
    {"packing", "@packing"},
    {"padding_free", "@packing"},
    {"bias_activation_fusion", "bias-swiglu-fusion"},
    {"recompute_granularity", "@none", "none"},
    {"recompute_granularity", "recompute-granularity"},
};

// Names of losses that compare a chosen and a rejected answer.
constexpr std::string_view kPairs = "dpo cpo orpo simpo rm";

void add_answers(ProgramSettings& settings) {
  const std::string* const kind = settings.find("@rlhf");
  if (kind == nullptr) return;
  if (matches_any(*kind, "grpo ppo")) {
    constexpr std::int64_t kUsualAnswer = 512;  // rlhf_args.py, max_completion_length
    const std::int64_t answer = settings.number("@completion", kUsualAnswer);
    const std::int64_t prompt = settings.number("@length", 0);
    settings.put("@length", prompt + answer);
    if (prompt == 0) {
      settings.note(
          fmt::format("the file does not state the prompt length: sequences are predicted as "
                      "answers of {} tokens without a prompt",
                      answer));
    }
  }
  settings.note(
      fmt::format("{}: only the update of the trained model is predicted; generation, "
                  "rewards and the passes of other models are not",
                  *kind));
}

// swift/arguments/tuner_args.py: without a tuner LoRA of rank 8 in all linear layers is trained.
void put_adapters_of_swift(ProgramSettings& settings, LeftSettings& left) {
  const std::int64_t bits = settings.number("@bits", 0);
  settings.put("@part.finetune", std::string(bits > 0 ? "qlora" : "lora"));
  if (bits == 8) settings.put("@part.base_dtype", std::string("int8"));
  if (!settings.has("@part.lora_rank")) settings.put("@part.lora_rank", 8);
  const std::string* const dropout = settings.find("@dropout");
  const double share = dropout == nullptr ? 0.05 : parse_number<double>(*dropout).value_or(0);
  settings.put("@part.lora_dropout", std::llround(100 * share));
  const std::string* const named = settings.find("@targets");
  if (named == nullptr) return;
  const std::optional<std::int64_t> targets = targets_of_modules(words_in(*named));
  if (!targets) {
    return left.refuse("target_modules", fmt::format("target_modules: {}", *named), kAllWeights);
  }
  settings.put("@part.lora_targets", text_of(row_of(StackPart::kLoraTargets), *targets));
}

void derive_swift(ProgramSettings& settings, LeftSettings& left) {
  const bool is_default = !settings.has("@tuner");
  if (is_default || settings.is("@tuner", "lora")) put_adapters_of_swift(settings, left);
  add_answers(settings);
  const std::string* const kind = settings.find("@rlhf");
  if (kind != nullptr && matches_any(*kind, kPairs)) {
    settings.put("per_device_train_batch_size",
                 2 * settings.number("per_device_train_batch_size", 1));
    settings.note("a sample is a pair of sequences");
  }
  if (settings.gpus() == 0) settings.put("@gpus", 1);  // one process unless NPROC_PER_NODE is set
  if (settings.has("gradient_accumulation_steps")) return;
  const bool generates = kind != nullptr && *kind == "grpo";
  const std::int64_t ranks = settings.number("per_device_train_batch_size", 1) * settings.gpus();
  constexpr std::int64_t kLeastBatch = 16;  // trainers/arguments.py
  settings.put("gradient_accumulation_steps",
               generates ? 1 : std::max<std::int64_t>(1, (kLeastBatch + ranks - 1) / ranks));
}

void derive_swift_megatron(ProgramSettings& settings, LeftSettings& left) {
  if (settings.is("@tuner", "lora")) put_adapters_of_swift(settings, left);
  for (const auto& [name, otherwise] :
       {std::pair{"@model", "@load"}, std::pair{"@length", "@seq"}}) {
    if (!settings.has(name) && settings.has(otherwise))
      settings.put(name, *settings.find(otherwise));
  }
  add_answers(settings);
  if (!settings.has("recompute-granularity") && !settings.has("@none")) {
    settings.put("recompute-granularity", "selective");
  }
  const std::string* const kind = settings.find("@rlhf");
  if (kind != nullptr && matches_any(*kind, kPairs)) {
    for (const char* name : {"micro-batch-size", "global-batch-size"}) {
      settings.put(name, 2 * settings.number(name, 1));
    }
    settings.note("a sample is a pair of sequences");
  }
  if (!settings.has("@length")) {
    settings.open.ask({"the file does not state the sequence length", "--set max_length=N"});
    return;
  }
  const std::string length = *settings.find("@length");
  settings.note(
      settings.is("@packing", "true")
          ? fmt::format("every sequence is predicted as {} tokens of packed samples, with "
                        "attention across samples: attention within each sample takes less time",
                        length)
          : fmt::format("every sequence is predicted as {} tokens, the maximum length: "
                        "shorter samples take less time and memory, so both are upper bounds",
                        length));
}

constexpr TrainingProgram kSwift[] = {
    {.name = "ms-swift",
     .commands = "swift sft, swift pt, swift rlhf, swift.cli.sft, swift.cli.pt, swift.cli.rlhf",
     .settings = SettingsOf::kTrainer,
     .rows = kSwiftRows,
     .shared_rows = kSwiftAdapterRows,
     .defaults = "per_device_train_batch_size=1 gradient_checkpointing=true bf16=true",
     .refused = std::span(kSwiftRefused).first(5),
     .outside = kSwiftOutside,
     .keeps_rest = true,
     .derive = derive_swift},
    {.name = "ms-swift's Megatron",
     .commands = "megatron sft, megatron pt, megatron rlhf, swift.cli._megatron.*",
     .settings = SettingsOf::kMegatron,
     .stack = "megatron-core",
     .rows = kSwiftMegatronRows,
     .shared_rows = kSwiftAdapterRows,
     .defaults = "micro-batch-size=1 global-batch-size=16 bf16=true attention-backend=flash "
                 "use-distributed-optimizer=true apply-rope-fusion=false attention-dropout=0 "
                 "hidden-dropout=0 moe-token-dispatcher-type=alltoall moe-grouped-gemm=true",
     .refused = std::span(kSwiftRefused).first(4),
     .outside = kSwiftOutside,
     .keeps_rest = true,
     .derive = derive_swift_megatron},
};

}  // namespace

std::span<const TrainingProgram> swift_programs() { return kSwift; }

}  // namespace tpsim

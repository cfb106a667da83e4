// Imports GPT-NeoX's YAML, whose names may contain '-' or '_'. Source of rules and defaults:
// megatron/neox_arguments/neox_args.py and megatron/model/transformer.py of EleutherAI/gpt-neox at
// ea7aefd.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

constexpr ProgramSetting kNeoxRows[] = {
    {"pipe_parallel_size", "@stages"},
    {"model_parallel_size", "tensor-model-parallel-size"},
    {"context_parallel_size", "context-parallel-size"},
    {"sequence_parallel", "sequence-parallel"},
    {"num_layers", "num-layers"},
    {"hidden_size", "hidden-size"},
    {"num_attention_heads", "num-attention-heads"},
    {"num_kv_heads", "num-query-groups"},
    {"intermediate_size", "ffn-hidden-size"},
    {"seq_length", "@length"},
    {"max_position_embeddings", "max-position-embeddings"},
    {"norm", "normalization", "rmsnorm te_rmsnorm non_parametric_rmsnorm", "RMSNorm"},
    {"norm", "normalization", "layernorm te_layernorm", "LayerNorm"},
    {"rms_norm_epsilon layernorm_epsilon", "norm-epsilon"},
    {"pos_emb", "position-embedding-type", "rotary", "rope"},
    {"pos_emb", "position-embedding-type", "learned", "learned_absolute"},
    {"pos_emb", "position-embedding-type", "alibi", "alibi"},
    {"pos_emb", "position-embedding-type", "none", "none"},
    {"rotary_pct", "rotary-percent"},
    {"rotary_emb_base", "rotary-base"},
    {"no_weight_tying", "untie-embeddings-and-output-weights"},
    {"gpt_j_residual", "@parallel-residual"},
    {"gpt_j_tied", "@one-norm"},
    {"activation", "swiglu", "swiglu", "true"},
    {"activation", "@activation"},
    {"mlp_multiple_of", "@multiple"},
    {"use_bias_in_attn_linear", "@attention-bias"},
    {"use_bias_in_mlp", "@mlp-bias"},
    {"attention_config.0.0.0 attention_config.0.0", "@core"},
    {"attention_dropout", "attention-dropout"},
    {"hidden_dropout", "hidden-dropout"},
    {"scaled_upper_triang_masked_softmax_fusion scaled_masked_softmax_fusion", "@fused-softmax"},
    {"bias_gelu_fusion", "bias-gelu-fusion"},
    {"rope_fusion", "@part.rotary_kernel", "true", "fused"},
    {"layernorm_fusion rmsnorm_fusion", "@part.norm_kernel", "true", "fused"},
    {"zero_optimization.stage", "@zero"},
    {"zero_optimization.cpu_offload", "@offload"},
    {"zero_optimization.offload_optimizer.device", "@offload", "cpu", "true"},
    {"train_micro_batch_size_per_gpu", "micro-batch-size"},
    {"gradient_accumulation_steps", "@accumulation"},
    {"train_batch_size", "@global-batch"},
    {"checkpoint_activations", "@recompute"},
    {"checkpoint_num_layers", "@recompute-layers"},
    {"fp16.enabled", "fp16"},
    {"fp16.fp16", "@fp16-word"},
    {"bf16.enabled", "bf16"},
    {"precision", "bf16", "bfloat16", "true"},
    {"precision", "fp16", "fp16", "true"},
    {"fp32_allreduce", "@wide"},
    {"data_types.grad_accum_dtype", "@wide", "fp32", "true"},
    {"data_types.grad_accum_dtype", "grad-reduce-in-bf16", "bf16 bfloat16", "true"},
    {"make_vocab_size_divisible_by", "make-vocab-size-divisible-by"},
    {"tokenizer_type", "@tokenizer"},
    {"vocab_file", "@vocab-file"},
    {"optimizer.type", "@optimizer"},
    {"num_gpus", "@gpus"},
    {"num_nodes", "@nodes"},
};

constexpr LeftOver kNeoxRefused[] = {
    {"optimizer.type", kAdamState, kAdamNames},
    {"zero_optimization.offload_param.device", "tpsim models weights on the GPU only"},
    {"moe_num_experts num_experts", "tpsim cannot read experts from GPT-NeoX's settings", "1"},
    {"mamba_* attention_config.0.0.0",
     "tpsim reads GPT-NeoX models with flash or global attention only", "flash global"},
    {"peft_*", kAllWeights},
    {"dpo_* train_impl", "tpsim models language-model losses only", "normal"},
};

constexpr std::string_view kNeoxOutside =
    "optimizer.* scheduler.* zero_optimization.* fp16.* bf16.* bf16 data_* data_path train_* "
    "test_* valid_* label_* split *_path weight_* tokenizer_* vocab_* merge_* save* load* log_* "
    "lr_* min_lr warmup eval_* checkpoint_* extra_save_iters keep_last_n_checkpoints "
    "distributed_backend gradient_clipping weight_decay init_method* output_layer_* "
    "steps_per_print wall_clock_* tensorboard_* wandb_* use_wandb wandb* launcher hostfile "
    "master_* deepspeed_* comment no_ssh_check force_multi synchronize_each_layer "
    "partition_activations contiguous_* profile_* num_workers mmap_* finetune include exclude seed "
    "attention_softmax_in_fp32 apply_query_key_layer_scaling use_bias_in_norms use_qk_layernorm "
    "lm_eval_* text_gen_* maximum_tokens prompt_end sample_* recompute top_* temperature "
    "return_logits eod_mask_loss override_lr_scheduler s3_* log_* dataset_impl pack_impl "
    "allow_chopped iteration do_* attention_type sliding_window_width memory_profiling* profile "
    "mlp_type bias_dropout_fusion fp32_reduce_scatter short_seq_prob reset_* global_num_gpus "
    "user_script use_shared_fs user_defined_* characters_per_subword git_hash flops_profiler.* "
    "csv_monitor.* tensorboard.* comet* use_comet attention_config* pipe_partition_method "
    "autotuning.* fp16_lm_cross_entropy loss_scale* initial_loss_scale min_loss_scale hysteresis "
    "gmlp_attn_dim onnx_safe te_* use_flashattn_swiglu use_cpu_initialization "
    "activation_checkpointing.* communication_data_type gradient_predivide_factor "
    "prescale_gradients sparse_gradients detect_nvlink_pairs is_pipe_parallel";

void put_stages_and_zero(ProgramSettings& settings, LeftSettings& left) {
  const std::int64_t stages = settings.number("@stages", 1);
  settings.put("pipeline-model-parallel-size", stages);
  const std::int64_t zero = settings.number("@zero", 0);
  if (zero == 1) settings.put("use-distributed-optimizer", "true");
  if (zero == 2 || zero == 3) {
    settings.put("use-megatron-fsdp", "true");
    settings.put("data-parallel-sharding-strategy",
                 zero == 2 ? "optim_grads" : "optim_grads_params");
  }
  if (settings.is("@offload", "true")) {
    settings.put("optimizer-cpu-offload", "true");
    settings.put("use-precision-aware-optimizer", "true");
  }
  if (!settings.is("@recompute", "true")) return;
  const std::int64_t layers = settings.number("@recompute-layers", 1);
  if (layers > 1) {
    left.refuse("checkpoint_num_layers", fmt::format("checkpoint_num_layers: {}", layers),
                "tpsim models recompute of one layer at a time: add --set checkpoint_num_layers=1");
    return;
  }
  settings.put("recompute-granularity", "full");
  settings.put("recompute-method", "uniform");
  settings.put("recompute-num-layers", 1);
}

// Sets the FFN size of a gated MLP to that of LLaMAParallelMLP (megatron/model/transformer.py): 2/3
// of 4 x hidden, rounded up to a multiple.
void put_shape(ProgramSettings& settings) {
  const bool is_gated = settings.is("swiglu", "true");
  if (is_gated && !settings.has("ffn-hidden-size")) {
    const std::int64_t multiple = settings.number("@multiple", 1);
    const std::int64_t width = 8 * settings.number("hidden-size", 0) / 3;
    settings.put("ffn-hidden-size", (width + multiple - 1) / multiple * multiple);
  }
  if (settings.number("num-query-groups", 0) > 0) settings.put("group-query-attention", "true");
  const bool no_bias = settings.is("@attention-bias", "false");
  if (no_bias && (is_gated || settings.is("@mlp-bias", "false"))) {
    settings.put("disable-bias-linear", "true");
  }
  const bool is_flash = settings.is("@core", "flash");
  settings.put("attention-backend", is_flash ? "flash" : "unfused");
  if (!is_flash) {
    settings.put("@part.attention_kernel",
                 settings.is("@fused-softmax", "true") ? "megatron" : "torch");
  }
}

void put_words(ProgramSettings& settings) {
  const std::string tokenizer = *settings.find("@tokenizer");
  constexpr std::int64_t kNeoxWords = 50277;  // 20B_tokenizer.json
  constexpr std::int64_t kLlamaWords = 32000;
  const std::string* const file = settings.find("@vocab-file");
  const bool is_neox = tokenizer == "HFTokenizer" &&
                       (file == nullptr || file->find("20B_tokenizer") != std::string::npos);
  if (is_neox) {
    settings.put("vocab-size", kNeoxWords);
    if (file == nullptr) {
      settings.note("vocab size 50277 is assumed, that of the tokenizer of GPT-NeoX-20B");
    }
  } else if (tokenizer == "SPMTokenizer") {
    settings.put("vocab-size", kLlamaWords);
    settings.note("vocab size 32000 is assumed, that of the tokenizer of LLaMA");
  } else {
    settings.put("tokenizer-type", tokenizer);
  }
}

void derive_neox(ProgramSettings& settings, LeftSettings& left) {
  put_stages_and_zero(settings, left);
  put_shape(settings);
  put_words(settings);
  if (settings.is("@wide", "true")) settings.put("accumulate-allreduce-grads-in-fp32", "true");
  if (settings.is("bf16", "true")) settings.erase("fp16");
  const std::int64_t replicas = settings.replicas();
  const std::int64_t micro = settings.number("micro-batch-size", 0);
  const bool is_open = !settings.has("@global-batch") && micro > 0 && replicas > 0;
  if (is_open) {
    settings.put("@global-batch", micro * replicas * settings.number("@accumulation", 1));
  }
  if (micro == 0 && !settings.has("@global-batch")) {
    settings.open.ask({"the file does not state the batch size per GPU",
                       "--set train_micro_batch_size_per_gpu=N"});
  }
  if (micro == 0 && settings.has("@global-batch") && replicas > 0) {
    settings.put("micro-batch-size",
                 std::max<std::int64_t>(1, settings.number("@global-batch", 1) /
                                               (replicas * settings.number("@accumulation", 1))));
  }
}

// Sets the norms of parallel attention and MLP blocks, which Megatron's arguments cannot express.
void finish_neox(const ProgramSettings& settings, ImportedPlan& plan) {
  if (!settings.is("@parallel-residual", "true")) return;
  plan.model.norm_place =
      settings.is("@one-norm", "true") ? NormPlace::kOneParallel : NormPlace::kTwoParallel;
}

constexpr TrainingProgram kNeox[] = {
    {.name = "GPT-NeoX",
     .commands = "deepy, gpt_neox.train",
     .file_keys = "pipe_parallel_size num_layers",
     .settings = SettingsOf::kMegatron,
     .stack = "gpt-neox",
     .rows = kNeoxRows,
     .defaults = "normalization=LayerNorm position-embedding-type=learned_absolute "
                 "attention-dropout=0.1 hidden-dropout=0.1 @tokenizer=GPT2BPETokenizer",
     .refused = kNeoxRefused,
     .outside = kNeoxOutside,
     .derive = derive_neox,
     .finish = finish_neox},
};

}  // namespace

std::span<const TrainingProgram> neox_programs() { return kNeox; }

}  // namespace tpsim

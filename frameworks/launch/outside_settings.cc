#include "frameworks/launch/outside_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/framework.h"

namespace tpsim {
namespace {

// Ignored settings, separated by spaces. A name that ends in '*' is a prefix.

// Settings of Megatron-LM and BigScience's fork: optimizer, schedule, data, files and logging.
constexpr std::string_view kMegatron =
    "--abort-on-unmet-fused-kernel-constraints --adam-* --align-* --apply-layernorm-1p "
    "--apply-query-key-layer-scaling --async-save --attention-softmax-in-fp32 "
    "--auto-detect-ckpt-format --bert-* --beta-fast --beta-slow --bf16-lm-cross-entropy "
    "--bias-dropout-fusion "
    "--bias-gelu-fusion --bias-swiglu-fusion --calculate-per-token-loss --check-* "
    "--checkpoint-in-cpu --ckpt-assume-constant-structure --ckpt-convert-* --ckpt-fully-* "
    "--clip-grad --codecarbon-dir --contigious-checkpointing --create-attention-mask* "
    "--create-moe-param-group --cross-entropy-fusion-impl --cross-entropy-loss-fusion "
    "--cuda-graph-warmup-steps --custom-token-counting --cyclic-* --data-args-path "
    "--data-cache-path --data-efficiency-* --data-impl --data-parallel-random-init --data-path "
    "--data-sharding --dataset --dataloader-type --ddp-* --DDP-impl --deallocate-pipeline-outputs "
    "--decoupled-* --defer-embedding-wgrad-compute --delay-grad-reduce --deterministic-mode "
    "--disable-mmap --disable-moe-token-dropping --disable-straggler-on-startup --dist-ckpt-* "
    "--dist-signal-handler --distributed-backend --distributed-timeout-* "
    "--disable-bf16-reduced-precision-matmul --empty-unused-memory-level --enable-experimental "
    "--enable-gpt-oss --enable-one-logger --end-of-* --end-weight-decay --eod-mask-loss "
    "--error-injection-* "
    "--export-force-local-attention --extra-vocab-size --eval-* --exit-* --fim-* --finetune "
    "--fp16-lm-cross-entropy --full-validation --gradient-accumulation-fusion --hf-* "
    "--high-priority-stream-groups --hysteresis --inference-* --init-method-* "
    "--init-model-with-meta-device --initial-loss-scale --iteration --kill-switch-path "
    "--lazy-mpu-init --legacy-* --load --local-rank --log-* --logging-* --loss-scale "
    "--loss-scale-window --lr --lr-* --manual-gc* --mask-prob --masked-softmax-fusion --master-* "
    "--max-padding-length --max-tokens-to-oom --merge-file --min-loss-scale --min-lr --mmap-warmup "
    "--mock-data --moe-aux-loss-coeff --moe-eval-* --moe-input-jitter-eps --moe-loss-coeff "
    "--moe-min-capacity --moe-per-layer-logging --moe-paged-stash-page-size "
    "--moe-paged-stash-buffer-size-factor-cpu --moe-router-bias-update-rate --moe-router-dtype "
    "--moe-router-enable-expert-bias --moe-router-group-topk --moe-router-load-balancing-type "
    "--moe-router-num-groups --moe-router-padding-* --moe-router-pre-softmax "
    "--moe-router-score-function --moe-router-topk-scaling-factor --moe-shared-expert-gate "
    "--moe-use-legacy-grouped-gemm --moe-z-loss-coeff --mscale* --mtp-loss-scaling-factor --muon-* "
    "--mup* --cpu-offloading-double-buffering --cpu-offloading-retain-pinned-cpu-buffers --nccl-* "
    "--no-align-* --no-check-* --no-ckpt-* --no-create-attention-mask-in-dataloader "
    "--no-gradient-reduce-div-fusion --no-initialization --no-load-* --no-log-* "
    "--no-masked-softmax-fusion --no-mmap-bin-files --no-persist-layer-norm "
    "--no-position-embedding --no-query-key-layer-scaling --no-save-* --no-scaled-init --no-use-* "
    "--no-weight-decay-* --node-rank --num-ckpt-* --num-dataset-builder-threads "
    "--num-distributed-ckpt-* --num-workers --nvtx* --one-logger-* --optimizer "
    "--original-max-position-embeddings --overlap-cpu-optimizer-d2h-h2d "
    "--overlap-param-gather-with-optimizer-step --persist-layer-norm --pin-cpu-* --override-lr* "
    "--override-opt* --padded-vocab-size --patch-tokenizer-type --pretrained-checkpoint "
    "--per-split-data-args-path --profile --profile-* --qk-clip* --rampup-batch-size --rank "
    "--record-memory-history --replication-* --rerun-* --reset-attention-mask --reset-iteration "
    "--reset-position-ids --rope-* --rotary-interleaved --rotary-percent --rotary-scaling-factor "
    "--rotary-scale-factor --rotary-seq-len-interpolation-factor --run-workload-* --s3-* "
    "--sample-rate --save --save-* --seed --seq-aux --sft* --sharp-* --skip-* --spec --split "
    "--start-weight-decay --straggler-* --strict-* --structured-logs* "
    "--suggested-communication-unit-size --te-rng-tracker --tensorboard-* --test-data-path "
    "--test-mode --test-weighted-split-paths* --tiktoken-* --timer-* --timing-log-* --tokenizer-* "
    "--tp-comm-bootstrap-backend --tp-comm-overlap-* --train-data-path --train-iters --train-mode "
    "--train-samples --train-sync-interval --trigger-path "
    "--metrics --model-name --no-new-tokens --scalar-loss-mask --use-checkpoint-args "
    "--vocab-extra-ids-list --train-tokens --train-weighted-split-paths* --trust-remote-code "
    "--universal-checkpoint "
    "--use-checkpoint-opt* --use-cpu-initialization --use-dataset-only --use-dist-ckpt "
    "--use-legacy-models --use-mcore-models --use-mp-args-from-checkpoint-args --use-one-sent-docs "
    "--use-persistent-ckpt-worker --use-pin-memory --use-pytorch-profiler --use-sharp "
    "--use-tensorboard --use-tokenizer-* --valid-* --vocab-extra-ids --vocab-file --wandb-* "
    "--weight-decay --weight-decay-* --wgrad-deferral-limit --fp8-amax-* --fp8-margin "
    "--fp8-interval --num-layers-at-start-in-bf16 --num-layers-at-end-in-bf16 --world-size";

constexpr const char* kAllLinear =
    "tpsim quantizes all linear layers of the blocks and nothing else";
constexpr LeftOver kRefused[] = {
    {"--optimizer optimizer.optimizer", kAdamState, kAdamNames},
    {"--optimizer.name", kAdamState, kAdamNames},
    {"--exp-avg-dtype --exp-avg-sq-dtype",
     "tpsim models both AdamW moments in fp32 or both in bf16", "fp32 float32 torch.float32"},
    {"--main-params-dtype optimizer.main_params_dtype", kAdamState, "fp32 float32 torch.float32"},
    {"optimizer.main_grads_dtype",
     "state the gradient dtype by ddp.grad_reduce_in_fp32: --set KEY=VALUE",
     "fp32 float32 torch.float32"},
    {"model.fine_grained_activation_offloading --fine-grained-activation-offloading "
     "model.offload_modules* --offload-modules model.fine_grained_offloading_* "
     "model.min_offloaded_tensor_size model.delay_offload_until_cuda_graph",
     "tpsim models offloaded activations of whole layers only"},
    {"model.cpu_offloading_weights --cpu-offloading-weights",
     "tpsim models offloaded activations only", "false False"},
    {"model.cpu_offloading_activations --cpu-offloading-activations",
     "tpsim models offloaded activations only", "true True"},
    {"model.heterogeneous_layers_config*", "name the model that has these blocks: --model NAME"},
    {"ddp.outer_dp_sharding_strategy", "tpsim models sharding over all data-parallel ranks only",
     "no_shard"},
    {"model.dsa_indexer_loss_coeff model.dsa_indexer_use_sparse_loss --dsa-indexer-loss-coeff "
     "--dsa-indexer-use-sparse-loss",
     "tpsim models indexers without a loss only", "false 0 0.0"},
    {"model.freeze_language_model model.freeze_vision_model model.freeze_vision_projection",
     kAllWeights, "false False"},
    {"--optimizer.early_step_in_backward",
     "tpsim models one optimizer step after the whole backward pass only"},
    {"--training.dtype", "tpsim models fp32 master weights only", "float32"},
    {"--training.enable_cpu_offload", "tpsim models weights on the GPU only"},
    {"--fp8-dot-product-attention --fp8-multi-head-attention --first-last-layers-bf16 "
     "--te-precision-config-file model.fp8_dot_product_attention model.fp8_multi_head_attention "
     "model.first_last_layers_bf16 --quantize.linear.float8.filter_fqns*",
     kAllLinear},
    {"--fp4-param-gather", "tpsim models weights of 16 or 8 bits only"},
    {"--partition-activations --distribute-saved-activations",
     "tpsim models unpartitioned checkpointed activations only"},
    {"--use-torch-fsdp2", "tpsim models Megatron's own FSDP only: --use-megatron-fsdp"},
    {"--hierarchical-context-parallel-sizes", "tpsim models flat context-parallel groups only"},
    {"--curriculum-learning", "tpsim models a constant sequence length only"},
    {"peft peft.* model.peft.*", kAllWeights, "none None null"},
    {"--fp32-residual-connection", "tpsim models activations of the plan's dtype only"},
    {"--standalone-embedding-stage", "tpsim models the embedding on the first stage only"},
    {"--pipeline-model-parallel-split-rank", "tpsim models decoders only"},
    {"--enable-zero-bubble --zero-bubble-* --enable-1f1b-v",
     "of the schedules with a split backward, tpsim models ZB-H1 only: --schedule zb-h1"},
    {"--pipeline-model-parallel-comm-backend", "tpsim models P2P by NCCL only", "nccl"},
    {"--moe-layer-recompute", "tpsim models recompute of blocks or core attention only"},
    {"--moe-extended-tp",
     "state the experts' layout: --expert-tensor-parallel-size and --expert-model-parallel-size"},
    {"--window-size", "name a model that has the window: --model NAME", "(-1,-1)"},
    {"--mlp-type", "tpsim models experts without a dense branch beside them only", "standard"},
    {"--mos --kd", "tpsim models the loss of language models only, without a teacher"},
};

// Returns the row that refuses the option; null if there is none.
const LeftOver* row_of_refused(const LaunchOption& option) {
  const auto row = std::find_if(std::begin(kRefused), std::end(kRefused), [&](const LeftOver& one) {
    return matches_any(option.name, one.patterns);
  });
  return row == std::end(kRefused) ? nullptr : &*row;
}

// Returns the option as the user wrote it: "--optimizer muon".
std::string to_string(const LaunchOption& option) {
  return option.value.empty() ? option.name : fmt::format("{} {}", option.name, option.value);
}

}  // namespace

std::string_view list_of(std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
       dot = name.find('.', dot + 1)) {
    const std::string_view part = name.substr(dot + 1, name.find('.', dot + 1) - dot - 1);
    const bool is_number =
        !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_number) return name.substr(0, dot);
  }
  return name;
}

bool has_pattern(std::string_view name, std::string_view patterns) {
  return matches_any(name, patterns) || matches_any(list_of(name), patterns);
}

void add_outside(std::string_view name, std::vector<std::string>& outside) {
  name = list_of(name);
  if (std::find(outside.begin(), outside.end(), name) == outside.end()) outside.emplace_back(name);
}

bool is_harmless(const LeftOver& row, std::string_view value) {
  return !row.harmless.empty() && matches_any(value, row.harmless);
}

bool is_outside_megatron(std::string_view option) { return matches_any(option, kMegatron); }

bool is_outside(LaunchStack stack, std::string_view name) {
  return framework_of(stack).is_outside(name);
}

bool is_set_aside(LaunchStack stack, const LaunchOption& option) {
  return is_outside(stack, option.name) || row_of_refused(option) != nullptr;
}

// A log prints all options. Only active ones are refused: switches without a value, low-precision
// formats, and the optimizer.
void refuse_logged(const std::vector<LaunchOption>& options, LeftSettings& left) {
  for (const LaunchOption& option : options) {
    const bool counts = matches_any(
        option.name,
        "--fp8 --fp4 --optimizer --exp-avg-dtype --exp-avg-sq-dtype --main-params-dtype");
    for (const LeftOver& refused : kRefused) {
      if (!matches_any(option.name, refused.patterns) || (!option.value.empty() && !counts))
        continue;
      if (is_harmless(refused, option.value)) continue;
      if (option.name.starts_with("--fp8-") || option.name.starts_with("--fp4-")) continue;
      left.refuse(option.name, to_string(option), std::string(refused.why));
    }
  }
}

std::vector<std::string> take_outside(LaunchStack stack, std::vector<LaunchOption>& options,
                                      LeftSettings& left) {
  std::vector<std::string> names;
  std::vector<LaunchOption> kept;
  for (LaunchOption& option : options) {
    const LeftOver* const row = row_of_refused(option);
    if (row != nullptr ? is_harmless(*row, option.value) : is_outside(stack, option.name)) {
      add_outside(option.name, names);
    } else if (row != nullptr) {
      left.refuse(option.name, to_string(option), std::string(row->why));
    } else {
      kept.push_back(std::move(option));
    }
  }
  options = std::move(kept);
  return names;
}

}  // namespace tpsim

// The table of fixed_behaviour.h. Files are those of Megatron-LM d98e8a6, Megatron-Bridge 067f987,
// torchtitan b5bcd76, accelerate 16cb6eb8, transformers 5.2.0.dev0, DeepSpeed edaa72212 and
// BigScience's fork 8387ae1.
#include "frameworks/launch/fixed_behaviour.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "core/base/text.h"

namespace tpsim {
namespace {

constexpr std::uint8_t files_of(LaunchStack stack) {
  return static_cast<std::uint8_t>(1 << static_cast<int>(stack));
}
constexpr std::uint8_t kTitanFiles = files_of(LaunchStack::kTorchTitan);
constexpr std::uint8_t kNanoFiles = files_of(LaunchStack::kNanotron);
constexpr std::uint8_t kForkFiles = files_of(LaunchStack::kMegatronDeepSpeed);
constexpr std::uint8_t kCoreFiles =
    files_of(LaunchStack::kMegatronLm) | files_of(LaunchStack::kNemo);
constexpr std::uint8_t kAccelFiles = files_of(LaunchStack::kAccelerate);
constexpr std::uint8_t kSpeedFiles = files_of(LaunchStack::kDeepSpeed);
constexpr std::uint8_t kTrainerFiles = kAccelFiles | kSpeedFiles;

struct FixedRow {
  StackPart part;
  std::uint8_t launchers;
  std::string_view text;
  std::string_view stated = {};  // values that the files state, separated by spaces
};

constexpr std::string_view kAllValues = "*";

constexpr auto kFixedRows = std::to_array<FixedRow>({
    {StackPart::kAttentionKernel, kCoreFiles,
     "Transformer Engine has FlashAttention 2, FlashAttention 3 and cuDNN, and unfused attention "
     "has Megatron's softmax kernel or PyTorch's ops (megatron/core/fusions/fused_softmax.py)",
     "torch flash2 flash3 cudnn"},
    {StackPart::kAttentionKernel, kForkFiles,
     "its attention is unfused, with its softmax kernel or PyTorch's ops "
     "(megatron/model/fused_softmax.py)",
     "torch"},
    {StackPart::kAttentionKernel, kTitanFiles,
     "the registry's configuration sets the backend, and PyTorch selects the kernel "
     "(torchtitan/models/common/attention.py)"},
    {StackPart::kAttentionKernel, kTrainerFiles,
     "--attn_implementation has FlashAttention 2, FlashAttention 3 and eager, which is --attention "
     "unfused; with sdpa PyTorch selects the kernel (transformers/modeling_utils.py:3722)",
     "torch flash2 flash3"},
    {StackPart::kNormKernel, kCoreFiles,
     "its layers have Transformer Engine's norm "
     "(megatron/core/extensions/transformer_engine.py:1048)"},
    {StackPart::kNormKernel, kForkFiles,
     "its norm is Apex's kernel (megatron/model/fused_layer_norm.py)"},
    {StackPart::kNormKernel, kTitanFiles,
     "its norm is torch.nn.RMSNorm (torchtitan/models/common/nn_modules.py:134)"},
    {StackPart::kNormKernel, kTrainerFiles,
     "its modules have PyTorch's ops; --use_liger_kernel replaces norm, rotary embedding, "
     "activation and loss together (transformers/training_args.py:919)",
     "fused"},
    {StackPart::kRotaryKernel, kCoreFiles,
     "it has Transformer Engine's kernel, or PyTorch's ops with --no-rope-fusion "
     "(megatron/core/models/common/embeddings/rope_utils.py)",
     "torch"},
    {StackPart::kRotaryKernel, kForkFiles,
     "its rotary embedding is compiled PyTorch ops (megatron/model/positional_embeddings.py)"},
    {StackPart::kRotaryKernel, kTitanFiles,
     "the registry's model states the form of the rotary embedding, in PyTorch's ops "
     "(torchtitan/models/common/rope.py)"},
    {StackPart::kRotaryKernel, kTrainerFiles,
     "its modules rotate halves in PyTorch's ops; --use_liger_kernel replaces norm, rotary "
     "embedding, activation and loss together (transformers/training_args.py:919)",
     "fused"},
    {StackPart::kActivationKernel, kCoreFiles,
     "its switches fuse the model's own activation or do not: --no-bias-gelu-fusion, "
     "--no-bias-swiglu-fusion (megatron/core/transformer/mlp.py)",
     "torch"},
    {StackPart::kActivationKernel, kForkFiles,
     "it fuses bias and GELU or does not: --no-bias-gelu-fusion "
     "(megatron/model/transformer.py:104)",
     "torch"},
    {StackPart::kActivationKernel, kTitanFiles,
     "its feed-forward layers have PyTorch's ops (torchtitan/models/common/feed_forward.py)"},
    {StackPart::kActivationKernel, kTrainerFiles,
     "its modules have PyTorch's ops; --use_liger_kernel replaces norm, rotary embedding, "
     "activation and loss together (transformers/training_args.py:919)",
     "fused"},
    {StackPart::kResidualKernel, kTitanFiles,
     "its blocks add residuals in PyTorch's ops (torchtitan/models/common/decoder.py)"},
    {StackPart::kResidualKernel, kTrainerFiles,
     "its modules add residuals in PyTorch's ops (transformers/models/llama/modeling_llama.py)"},
    {StackPart::kResidualKernel, kForkFiles | kCoreFiles,
     "it fuses bias, dropout and residual or does not: --no-bias-dropout-fusion", "torch"},
    {StackPart::kResidualGradient, kCoreFiles,
     "a separate op adds the residual's gradient; --fused-residual-rmsnorm covers only norms "
     "outside of Transformer Engine's linear layers "
     "(megatron/core/extensions/transformer_engine.py:1054)"},
    {StackPart::kResidualGradient, kForkFiles | kTitanFiles | kTrainerFiles,
     "PyTorch's autograd adds the residual's gradient in a separate op "
     "(torch/csrc/autograd/input_buffer.cpp)"},
    {StackPart::kOptimizerKernel, kCoreFiles,
     "its AdamW is the fused kernel of Transformer Engine or Apex "
     "(megatron/core/optimizer/__init__.py)"},
    {StackPart::kOptimizerKernel, kForkFiles,
     "its AdamW is Apex's fused kernel (megatron/optimizer/__init__.py:16)"},
    {StackPart::kLossHead, kCoreFiles,
     "its loss is the vocab-parallel cross entropy, with --cross-entropy-loss-fusion or without "
     "(megatron/core/models/common/language_module/language_module.py:174)",
     "vocab_parallel vocab_parallel_fused"},
    {StackPart::kLossHead, kForkFiles,
     "its loss is the vocab-parallel cross entropy (megatron/mpu/cross_entropy.py)"},
    {StackPart::kLossHead, kTitanFiles,
     "its loss is PyTorch's cross entropy, whole or in chunks (torchtitan/components/loss.py)",
     "eager chunked"},
    {StackPart::kLossHead, kTrainerFiles,
     "the model's forward computes PyTorch's cross entropy; --use_liger_kernel replaces norm, "
     "rotary embedding, activation and loss together (transformers/loss/loss_utils.py)",
     "chunked"},
    {StackPart::kLogitsDtype, kCoreFiles,
     "its cross entropy reads an fp32 copy of the logits "
     "(megatron/core/fusions/fused_cross_entropy.py)"},
    {StackPart::kLogitsDtype, kForkFiles,
     "its loss reads an fp32 copy of the logits (megatron/model/gpt_model.py)"},
    {StackPart::kLogitsDtype, kTitanFiles,
     "its loss reads an fp32 copy of the logits (torchtitan/components/loss.py:58)"},
    {StackPart::kLogitsDtype, kTrainerFiles,
     "its loss reads an fp32 copy of the logits (transformers/loss/loss_utils.py)"},
    {StackPart::kGradientAccumulation, kCoreFiles,
     "wgrad GEMMs add to the gradient buffer, or with --no-gradient-accumulation-fusion a separate "
     "op does; only Megatron-FSDP overwrites "
     "(megatron/core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py:510)",
     "separate"},
    {StackPart::kGradientAccumulation, kForkFiles | kTitanFiles | kTrainerFiles,
     "PyTorch's autograd computes a gradient and then adds it "
     "(torch/csrc/autograd/functions/accumulate_grad.h)"},
    {StackPart::kDataParallelSync, kCoreFiles,
     "ZeRO 0 all-reduces gradients, and the distributed optimizer reduce-scatters them "
     "(megatron/core/distributed/param_and_grad_buffer.py)"},
    {StackPart::kDataParallelSync, kForkFiles | kSpeedFiles,
     "dtype and ZeRO stage decide: slices in ZeRO 1, reduce-scatters in ZeRO 2 and 3, "
     "all-reduces of the bf16 optimizer (deepspeed/runtime/engine.py)"},
    {StackPart::kDataParallelSync, kTitanFiles | kAccelFiles,
     "FSDP reduce-scatters gradients, and replicas all-reduce them "
     "(torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py)"},
    {StackPart::kGradientSync, kCoreFiles,
     "Megatron-FSDP reduces gradients after every micro-batch "
     "(megatron/core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py)"},
    {StackPart::kGradientSync, kTitanFiles,
     "it reduces gradients after every micro-batch, with a pipeline after the last "
     "(torchtitan/trainer.py, torch/distributed/pipelining/stage.py)"},
    {StackPart::kGradientSync, kAccelFiles,
     "it reduces gradients after every micro-batch with sync_each_batch, otherwise after the last "
     "(accelerate/accelerator.py:1291)",
     "every_micro_batch"},
    {StackPart::kGradientSync, kSpeedFiles,
     "ZeRO 2 and 3 reduce gradients after every micro-batch and refuse no_sync "
     "(deepspeed/runtime/engine.py:3042)"},
    {StackPart::kReduceDtype, files_of(LaunchStack::kNemo),
     "Megatron-Bridge converts a dtype of its YAML only if the recipe has one "
     "(src/megatron/bridge/training/utils/omegaconf_utils.py:500)"},
    {StackPart::kReduceDtype, kTitanFiles,
     "mixed_precision_reduce accepts float32 only (torchtitan/config/configs.py)", "as_added_up"},
    {StackPart::kReduceDtype, kAccelFiles,
     "set_mixed_precision gives weights and reduction the same dtype "
     "(accelerate/utils/dataclasses.py)"},
    {StackPart::kReduceDtype, kSpeedFiles,
     "communication_data_type states one dtype of reduction (deepspeed/runtime/engine.py:1405)",
     kAllValues},
    {StackPart::kOverlapGradientReduction, kForkFiles,
     "DeepSpeed's pipeline engine reduces gradients after the last backward "
     "(deepspeed/runtime/pipe/engine.py)"},
    {StackPart::kOverlapGradientReduction, kTitanFiles | kAccelFiles,
     "FSDP always reduces gradients in a stream of its own "
     "(torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py)"},
    {StackPart::kOverlapParameterGather, kForkFiles,
     "DeepSpeed gathers weights after the update, before the next step "
     "(deepspeed/runtime/zero/stage_1_and_2.py)"},
    {StackPart::kOverlapParameterGather, kTitanFiles | kAccelFiles,
     "FSDP always gathers weights in a stream of its own "
     "(torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py)"},
    {StackPart::kOverlapParameterGather, kSpeedFiles,
     "ZeRO 1 and 2 gather weights after the update, ZeRO 3 in advance unless "
     "stage3_prefetch_bucket_size is 0 "
     "(deepspeed/runtime/zero/partitioned_param_coordinator.py:452)",
     kAllValues},
    {StackPart::kShardGroup, kForkFiles,
     "the optimizer is sharded over all data-parallel ranks (deepspeed/runtime/engine.py)"},
    {StackPart::kShardGroup, kSpeedFiles,
     "ZeRO shards over all ranks; MiCS needs deepspeed.zero.MiCS_Init, which transformers does not "
     "call (deepspeed/runtime/zero/mics.py)",
     "all"},
    {StackPart::kPipelineSends, kCoreFiles,
     "stages send shards of the sequence with sequence parallelism, otherwise whole activations "
     "(megatron/core/pipeline_parallel/schedules.py)"},
    {StackPart::kPipelineSends, kForkFiles,
     "DeepSpeed's pipeline engine partitions activations over tensor ranks by itself "
     "(deepspeed/runtime/pipe/engine.py)"},
    {StackPart::kPipelineSends, kTitanFiles,
     "stages send what a rank holds: shards of the sequence with sequence parallelism "
     "(torch/distributed/pipelining/stage.py)"},
    {StackPart::kP2pCalls, kCoreFiles,
     "its schedules send and receive at once (megatron/core/pipeline_parallel/"
     "p2p_communication.py)"},
    {StackPart::kP2pCalls, kForkFiles,
     "DeepSpeed's pipeline engine has one order of sends and receives "
     "(deepspeed/runtime/pipe/engine.py)"},
    {StackPart::kP2pCalls, kTitanFiles,
     "PyTorch's schedules batch sends and receives (torch/distributed/pipelining/schedules.py)"},
    {StackPart::kOverlapP2p, kCoreFiles,
     "interleaved schedules overlap transfers unless --no-overlap-p2p-communication is set, 1F1B "
     "does not overlap them (megatron/training/arguments.py)",
     "off"},
    {StackPart::kOverlapP2p, kForkFiles,
     "DeepSpeed's pipeline engine waits for each transfer (deepspeed/runtime/pipe/engine.py)"},
    {StackPart::kOverlapP2p, kTitanFiles,
     "PyTorch's schedules wait for transfers between computations "
     "(torch/distributed/pipelining/schedules.py)"},
    {StackPart::kTpOverlap, kCoreFiles,
     "its linear layers are Transformer Engine's, whose only switch is --tp-comm-overlap "
     "(transformer_engine/pytorch/module/linear.py)",
     "userbuffers"},
    {StackPart::kTpOverlap, kForkFiles,
     "its linear layers reduce after dgrad and wgrad (megatron/mpu/mappings.py)"},
    {StackPart::kTpOverlap, kTitanFiles,
     "async tensor parallelism is its only overlap (torchtitan/config/configs.py:307)",
     "userbuffers"},
    {StackPart::kTpOverlap, kSpeedFiles,
     "AutoTP reduces after each linear layer (deepspeed/module_inject/layers.py)"},
    {StackPart::kTpRecomputeAllgather, kCoreFiles,
     "Transformer Engine saves the shard and gathers it again in backward "
     "(transformer_engine/pytorch/module/linear.py)"},
    {StackPart::kTpRecomputeAllgather, kTitanFiles,
     "its layers save gathered inputs (torchtitan/models/common/decoder_sharding.py)"},
    {StackPart::kCpCommType, kCoreFiles,
     "--cp-comm-type has p2p, all_gather, a2a and a2a+p2p "
     "(megatron/core/transformer/transformer_config.py)",
     "all_gather p2p a2a"},
    {StackPart::kCpCommType, kTitanFiles,
     "it uses PyTorch's context parallelism (torchtitan/distributed/context_parallel)"},
    {StackPart::kCudaGraphs, kForkFiles, "it captures no CUDA graphs (megatron/training.py)"},
    {StackPart::kCudaGraphs, kTitanFiles,
     "it captures forward and backward as one graph, or nothing (disable_cuda_graphs in "
     "torchtitan/config/configs.py)",
     "none full_iteration"},
    {StackPart::kCudaGraphs, kTrainerFiles,
     "it captures graphs only in the mode reduce-overhead of torch.compile, around compiled parts "
     "(transformers/training_args.py, torch_compile_mode)"},
    {StackPart::kCompile, kCoreFiles,
     "it compiles single functions, not layers (megatron/core/jit.py)"},
    {StackPart::kCompile, kForkFiles,
     "it fuses single functions with TorchScript (megatron/model/fused_bias_gelu.py)"},
    {StackPart::kOptimizerDtype, kForkFiles,
     "Apex's FusedAdam keeps fp32 moments (apex/optimizers/fused_adam.py)"},
    {StackPart::kOptimizerDtype, kTitanFiles,
     "only the fused AdamW of torchtitan has bf16 moments "
     "(torchtitan/components/optimizer/optimizer.py)",
     kAllValues},
    {StackPart::kOptimizerDtype, kAccelFiles,
     "PyTorch's AdamW keeps moments in the dtype of the weights, and FSDP's shards are in fp32 "
     "(torch/optim/adam.py); tpsim does not model adamw_anyprecision of torchdistx"},
    {StackPart::kOptimizerDtype, kSpeedFiles,
     "moments are in fp32, or in bf16 with bf16_master_weights_and_grads: --master-weights none "
     "--optimizer-dtype bf16 (deepspeed/runtime/config.py:1049)",
     "bf16"},
    {StackPart::kDispatcher, kTitanFiles,
     "its dispatchers are all-to-all, DeepEP and HybridEP "
     "(torchtitan/models/common/token_dispatcher.py)",
     "deepep hybridep"},
    {StackPart::kDispatcher, kTrainerFiles,
     "ranks hold all experts, so that no tokens are exchanged "
     "(transformers/integrations/moe.py)"},
    {StackPart::kRouterKernel, kTitanFiles,
     "its router has PyTorch's ops (torchtitan/models/common/moe.py)"},
    {StackPart::kRouterKernel, kTrainerFiles,
     "the model's module computes the router in PyTorch's ops "
     "(transformers/models/*/modeling_*.py)"},
    {StackPart::kPermute, kCoreFiles,
     "--moe-permute-fusion selects the kernel, otherwise index ops run "
     "(megatron/core/transformer/moe/moe_utils.py)",
     "fused unfused unfused_seq"},
    {StackPart::kPermute, kTitanFiles,
     "its dispatcher has its own permutation (torchtitan/models/common/token_dispatcher.py)"},
    {StackPart::kPermute, kTrainerFiles,
     "the experts' implementation has its own index ops (transformers/integrations/moe.py)"},
    {StackPart::kExpertWeighting, kCoreFiles,
     "the router's probabilities scale activations (megatron/core/transformer/moe/experts.py)"},
    {StackPart::kExpertWeighting, kTitanFiles,
     "the registry's configuration states where probabilities apply "
     "(torchtitan/models/common/moe.py)"},
    {StackPart::kExpertWeighting, kTrainerFiles,
     "the router's probabilities scale outputs (transformers/integrations/moe.py)"},
    {StackPart::kExpertLoad, kCoreFiles,
     "the load follows from router and data, unless --moe-router-force-load-balancing fixes it "
     "(megatron/core/transformer/moe/router.py)",
     "balanced"},
    {StackPart::kExpertLoad, kTitanFiles,
     "the load follows from router and data, unless moe_force_load_balance fixes it "
     "(torchtitan/config/configs.py)",
     "balanced"},
    {StackPart::kExpertLoad, kTrainerFiles,
     "the load follows from router and data (transformers/integrations/moe.py)"},
    {StackPart::kEpOverlap, kTitanFiles,
     "only its schedule DualPipeV overlaps dispatch, which tpsim does not model "
     "(torchtitan/distributed/pipeline_parallel.py:23)"},
    {StackPart::kEpOverlap, kTrainerFiles,
     "ranks hold all experts, so that no tokens are exchanged (transformers/integrations/moe.py)"},
    {StackPart::kDelayWgrad, kTitanFiles | kTrainerFiles,
     "autograd computes dgrad and wgrad together (torch/nn/functional.py)"},
    {StackPart::kMasterWeights, kCoreFiles,
     "its optimizer keeps an fp32 copy of 16-bit weights (megatron/core/optimizer/optimizer.py)"},
    {StackPart::kMasterWeights, kForkFiles,
     "its optimizers keep an fp32 copy of 16-bit weights (deepspeed/runtime/bf16_optimizer.py, "
     "fp16/fused_optimizer.py)"},
    {StackPart::kMasterWeights, kTitanFiles,
     "FSDP casts fp32 shards; weights, gradients and moments can only be in bf16 together: "
     "--master-weights none --optimizer-dtype bf16 (torchtitan/config/configs.py)",
     "none"},
    {StackPart::kMasterWeights, kAccelFiles,
     "FSDP casts fp32 shards when it gathers them (accelerate/utils/dataclasses.py)"},
    {StackPart::kMasterWeights, kSpeedFiles,
     "ZeRO has an fp32 copy of 16-bit weights, none, or fp32 weights with autocast "
     "(deepspeed/runtime/precision_config.py:63, runtime/torch_autocast.py)",
     "autocast none"},
    {StackPart::kExpertKernel, kCoreFiles,
     "its grouped GEMMs are Transformer Engine's (megatron/core/transformer/moe/experts.py)",
     "grouped looped"},
    {StackPart::kExpertKernel, kTitanFiles,
     "its experts are one grouped GEMM of PyTorch (torchtitan/models/common/moe.py:110)"},
    {StackPart::kExpertKernel, kTrainerFiles,
     "from_pretrained(experts_implementation=...) in the training script selects the kernel "
     "(transformers/modeling_utils.py:1849)"},
    {StackPart::kOptimizerKind, kForkFiles, "--optimizer has adam and sgd (megatron/arguments.py)"},
    {StackPart::kMuonTpMode, kForkFiles, "--optimizer has adam and sgd (megatron/arguments.py)"},
    {StackPart::kOptimizerKind, kTitanFiles,
     "the registry's configuration states the optimizer of each parameter group "
     "(torchtitan/components/optimizer/optimizer.py)"},
    {StackPart::kMuonTpMode, kTitanFiles,
     "the registry's configuration states the optimizer of each parameter group "
     "(torchtitan/components/optimizer/optimizer.py)"},
    {StackPart::kOptimizerKind, kTrainerFiles,
     "--optim has no Muon (transformers/training_args.py, OptimizerNames)"},
    {StackPart::kMuonTpMode, kTrainerFiles,
     "--optim has no Muon (transformers/training_args.py, OptimizerNames)"},
    {StackPart::kTpRecomputeAllgather, kNanoFiles, "", kAllValues},
    {StackPart::kExpertCapacity, kTitanFiles,
     "the registry's configuration states non_blocking_capacity_factor "
     "(torchtitan/models/common/token_dispatcher.py)"},
    {StackPart::kExpertCapacity, kTrainerFiles,
     "its experts process all tokens (transformers/integrations/moe.py)"},
    {StackPart::kExpertStash, kTitanFiles,
     "it saves experts' activations as they are (torchtitan/models/common/moe.py)"},
    {StackPart::kExpertStash, kTrainerFiles,
     "it saves experts' activations as they are (transformers/integrations/moe.py)"},
    {StackPart::kOffloadLayers, kForkFiles,
     "DeepSpeed offloads checkpoints of activations, not activations of chosen layers "
     "(deepspeed/runtime/activation_checkpointing/checkpointing.py)"},
    {StackPart::kOffloadLayers, kTitanFiles,
     "its CPU offload moves weights, gradients and optimizer state "
     "(torchtitan/config/configs.py, enable_cpu_offload)"},
    {StackPart::kOffloadLayers, kTrainerFiles,
     "its offload moves weights and optimizer state (transformers/training_args.py)"},
});

constexpr std::string_view kNoKey =
    "its configuration has no such key (src/nanotron/config/config.py)";

}  // namespace

StatedValues stated_values(LaunchStack stack, StackPart part) {
  for (const FixedRow& row : kFixedRows) {
    if (row.part != part || (row.launchers & files_of(stack)) == 0) continue;
    const bool are_all = row.stated == kAllValues;
    return {are_all, are_all ? std::string_view() : row.stated, row.text};
  }
  if ((kNanoFiles & files_of(stack)) != 0) return {false, "", kNoKey};
  return {};
}

std::string fixed_behaviour_text() {
  std::string text = "| part | launchers | behavior |\n|---|---|---|\n";
  for (const FixedRow& row : kFixedRows) {
    if (row.text.empty()) continue;
    std::string names;
    for (const LaunchStack stack : all_of<LaunchStack>()) {
      if ((row.launchers & files_of(stack)) == 0) continue;
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(stack));
    }
    text += fmt::format("| `{}` | {} | {} |\n", row_of(row.part).key, names, row.text);
  }
  return text + fmt::format("| all | nanotron | {} |\n", kNoKey);
}

}  // namespace tpsim

#include <array>

#include "app/documents/key_meanings.h"

namespace tpsim::app {
namespace {

constexpr std::array kStackMeanings = {
    KeyMeaning{"stack.known_as",
               "names of the stack in tables of measured runs, separated by commas; \"NeMo until "
               "2025-01\" applies to runs up to that month, \"NeMo on H100\" to runs on that GPU"},
    KeyMeaning{"stack.launcher", "launcher whose rules plans must satisfy; none: no rules [none]"},
    KeyMeaning{"stack.zero",
               "ZeRO stage of measured runs that do not state one; -1: the stage in the "
               "description of their source [-1]"},
    KeyMeaning{"stack.sequence_parallel",
               "sequence parallelism of measured runs with tp > 1 that do not state it [false]"},
    KeyMeaning{"stack.gradient_dtype",
               "dtype of gradient accumulation in measured bf16 runs that do not state one [fp32]"},
    KeyMeaning{"stack.fp8_param_gather",
               "measured runs with fp8 or fp8-current store and gather weights in 8 bits [false]"},
    KeyMeaning{"stack.training", "training options that change the executed ops"},
    KeyMeaning{"stack.training.widened_optimizer_gradients",
               "the optimizer copies its shard of 16-bit gradients to fp32 at the end of the step "
               "[false]"},
    KeyMeaning{"stack.training.clip_gradients",
               "gradients are clipped by their global norm before the update"},
    KeyMeaning{"stack.host", "host times to launch work"},
    KeyMeaning{"stack.host.per_op", "time per kernel launch"},
    KeyMeaning{"stack.host.per_block_op",
               "additional time per kernel of a block: Python, dispatcher, autograd"},
    KeyMeaning{"stack.host.per_collective", "time per collective or send"},
    KeyMeaning{"stack.host.per_block_forward",
               "time per block and micro-batch in forward, in addition to its kernel launches"},
    KeyMeaning{"stack.host.per_block_backward",
               "time per block and micro-batch in backward, in addition to its kernel launches"},
    KeyMeaning{"stack.host.per_routing_forward", "additional forward time per MoE layer [0 s]"},
    KeyMeaning{"stack.host.per_routing_backward", "additional backward time per MoE layer [0 s]"},
    KeyMeaning{"stack.host.per_expert_forward",
               "additional forward time per local expert if its tokens are quantized to 8 or 4 "
               "bits [0 s]"},
    KeyMeaning{"stack.host.per_expert_backward",
               "additional backward time per local expert if its tokens are quantized [0 s]"},
    KeyMeaning{"stack.host.per_gather",
               "ZeRO 3: time per block and pass of the hooks that gather and free weights [0 s]"},
    KeyMeaning{"stack.host.per_transfer",
               "time per send between pipeline stages, without the transfer itself [0 s]"},
    KeyMeaning{"stack.host.per_micro_batch", "time per micro-batch: schedule and data loading"},
    KeyMeaning{"stack.host.per_step", "time per step: logging, timers, learning-rate schedule"},
    KeyMeaning{"stack.host.blocking_op", "additional time per kernel with blocking launches [0 s]"},
    KeyMeaning{"stack.host.blocking_collective",
               "additional time per collective with blocking launches [0 s]"},
    KeyMeaning{"stack.parts", "software options of the stack"},
    KeyMeaning{"stack.memory", "GPU memory in addition to tensors"},
    KeyMeaning{"stack.memory.context", "CUDA context and loaded kernels"},
    KeyMeaning{"stack.memory.library_workspace", "workspaces of cuBLAS and similar libraries"},
    KeyMeaning{"stack.memory.collective_buffers", "buffers per communicator of a rank"},
    KeyMeaning{"stack.memory.allocation_granularity",
               "allocation sizes are rounded up to a multiple of this"},
    KeyMeaning{"stack.memory.reduction_bucket",
               "elements of the bucket into which gradients are copied before reduction; 0: no "
               "bucket [0]"},
    KeyMeaning{"stack.memory.gradient_stand_ins",
               "with fused wgrad accumulation, one placeholder gradient per distinct weight shape "
               "stays allocated [false]"},
    KeyMeaning{"stack.memory.layer_in_reduction",
               "ZeRO 2 and 3 with overlapped reduction: the unsharded gradients of a layer stay in "
               "memory until those of the next layer exist [false]"},
    KeyMeaning{"stack.memory.caching_allocator",
               "freed memory of one category (activations, gradients, workspace, ...) does not fit "
               "tensors of another, so that the peaks of the categories add up; expandable "
               "segments avoid this [false]"},
    KeyMeaning{"stack.memory.fragmentation",
               "reserved but unused memory relative to activations and workspace"},
    KeyMeaning{"stack.memory.spread", "relative standard deviation of the predicted memory"},
    KeyMeaning{"stack.choices",
               "values of settings that the launcher accepts, and values of software options that "
               "a search tries; an omitted setting accepts any value"},
    KeyMeaning{"stack.choices.source",
               "source of these limits, which messages about refused plans print"},
    KeyMeaning{"stack.zero_2_and_3_with_pipeline",
               "ZeRO 2 and 3 can be combined with pipeline parallelism"},
    KeyMeaning{"stack.deepspeed_engine",
               "in measured runs DeepSpeed's engine selects data_parallel_sync: bf16_optimizer for "
               "bf16 with fp32 accumulation below ZeRO 2, slices for other ZeRO 1 runs, else "
               "all_reduce [false]"},
    KeyMeaning{"stack.tensor_overlap",
               "tp_overlap=userbuffers with sequence parallelism: share of the time of "
               "tensor-parallel collectives that overlaps with GEMMs [0]"},
    KeyMeaning{"stack.eager_traffic",
               "time of the kernels other than GEMMs, relative to the modelled fused kernels [1]"},
    KeyMeaning{"stack.flash_speed",
               "speed of the flash attention kernel relative to that of the profile [1]"},
    KeyMeaning{"stack.scales_loss",
               "fp16 gradients are unscaled and checked for infinities in a separate pass before "
               "the optimizer [true]"},
    KeyMeaning{"stack.fp8_products",
               "files of older versions: plans without precision use fp8 [false]"},
    KeyMeaning{"stack.rounds_anew",
               "inputs of low-precision GEMMs are saved in 16 bits and quantized again in backward "
               "(torchao); false: quantized inputs are saved [false]"},
    KeyMeaning{"stack.rounds_in_products",
               "every low-precision GEMM quantizes its operands itself, and operands are gathered "
               "in 16 bits [false]"},
    KeyMeaning{"stack.compiles_loss",
               "torch.compile covers the loss too, so that the logits have no fp32 copy [false]"},
    KeyMeaning{"stack.checkpoint_stops_early",
               "full recompute does not repeat the last GEMM of a block, which backward does not "
               "need [false]"},
    KeyMeaning{"stack.copies_gathered_weights",
               "ZeRO 3 copies gathered weights from the buffer of the all-gather into tensors "
               "[false]"},
    KeyMeaning{"stack.overlap_slowdown",
               "slowdown factor of compute that overlaps with a collective"},
    KeyMeaning{"stack.rank_jitter", "relative standard deviation of compute time between ranks"},
    KeyMeaning{"stack.run_spread", "relative standard deviation between runs of one plan"},
    KeyMeaning{"stack.residual_spread", "relative standard deviation of the prediction error"},
    KeyMeaning{"stack.spread_gpus",
               "profiles, by the start of their names, of the GPUs that residual_spread rests on, "
               "separated by commas; on other GPUs intervals are wider [all]"},
    KeyMeaning{"stack.unmodelled",
               "expected time per step outside all modelled terms, relative to their sum, of "
               "software without calibration [0]"},
};

}  // namespace

std::span<const KeyMeaning> stack_key_meanings() { return kStackMeanings; }

}  // namespace tpsim::app

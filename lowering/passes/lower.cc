#include "lowering/passes/lower.h"

#include <array>

namespace tpsim {
namespace {

constexpr std::array<LoweringPass, 17> kPasses = {{
    {"attention_heads", "GEMMs of heads that share keys are one batched GEMM",
     merge_attention_heads},
    {"token_dispatch", "tokens reach the experts' ranks as the dispatcher sends them",
     dispatch_tokens},
    {"sharded_weights", "weights are gathered module by module", gather_sharded_weights},
    {"context_exchange", "keys and values are exchanged in a ring or by all-to-alls",
     exchange_context},
    {"recompute", "forward ops run again before backward", recompute},
    {"early_stop", "recompute stops when backward has what it needs", stop_recompute_early},
    {"quantization", "operands of linear layers are cast to 8 or 4 bits", quantize},
    {"unfused_kernels", "an op becomes the kernels that the framework launches", unfuse_kernels},
    {"column_inputs", "column-parallel layers copy their inputs", copy_column_inputs},
    {"weight_casts", "autocast casts weights and their gradients", cast_weights},
    {"frozen_weights", "weights of few bits are dequantized before each GEMM", dequantize_weights},
    {"adapters", "dropout, scale and addition of adapters are ops of their own", unfuse_adapters},
    {"loss_head", "logits and loss are computed and kept as the framework does", compute_loss},
    {"saved_tensors", "outputs of recomputed ops are not saved", drop_recomputed},
    {"token_stash", "saved tokens of experts are compacted", stash_tokens},
    {"overlap", "collectives run beside compute", overlap_collectives},
    {"host", "the host launches kernels and runs the modules' code", issue_launches},
}};

constexpr std::array<StepEndPass, 7> kStepEndPasses = {{
    {"optimizer_state", "moments and copies of weights have the software's dtypes",
     narrow_optimizer_state},
    {"frozen_weights", "frozen weights have the software's dtype", store_frozen_weights},
    {"owners", "each tensor is updated by one rank", share_among_owners},
    {"narrow_gather", "8-bit weights are gathered in 8 bits", gather_narrow_weights},
    {"reduction_buckets", "gradients are reduced in buckets, and owners send one by one",
     reduce_in_buckets},
    {"unfused_kernels", "an op becomes the kernels that the framework launches", unfuse_optimizer},
    {"host", "the host launches kernels", issue_step_end},
}};

}  // namespace

std::span<const StepEndPass> step_end_passes() { return kStepEndPasses; }

LoweredLayer lower_step_end(LayerKind kind, const StepEndInputs& inputs) {
  LoweredLayer layer = as_traced(kind, inputs.trace);
  for (const StepEndPass& pass : step_end_passes()) pass.run(layer, inputs);
  return layer;
}

std::span<const LoweringPass> lowering_passes() { return kPasses; }

LoweredLayer lower(LayerKind kind, const LayerTrace& trace, const LayerInputs& inputs,
                   std::size_t passes) {
  LoweredLayer layer = as_traced(kind, trace);
  for (const LoweringPass& pass : lowering_passes().first(passes)) pass.run(layer, inputs);
  return layer;
}

}  // namespace tpsim

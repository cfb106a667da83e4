#include "lowering/passes/lower.h"

#include <array>

namespace tpsim {
namespace {

constexpr std::array<LoweringPass, 13> kPasses = {{
    {"attention_heads", "GEMMs of heads that share keys are one batched GEMM",
     merge_attention_heads},
    {"token_dispatch", "tokens reach the experts' ranks as the dispatcher sends them",
     dispatch_tokens},
    {"sharded_weights", "weights are gathered module by module", gather_sharded_weights},
    {"context_exchange", "keys and values are exchanged in a ring or by all-to-alls",
     exchange_context},
    {"recompute", "forward ops run again before backward", recompute},
    {"quantization", "operands of linear layers are cast to 8 or 4 bits", quantize},
    {"unfused_kernels", "an op becomes the kernels that the framework launches", unfuse_kernels},
    {"weight_casts", "autocast casts weights and their gradients", cast_weights},
    {"loss_head", "logits and loss are computed and kept as the framework does", compute_loss},
    {"saved_tensors", "outputs of recomputed ops are not saved", drop_recomputed},
    {"token_stash", "saved tokens of experts are compacted", stash_tokens},
    {"overlap", "collectives run beside compute", overlap_collectives},
    {"host", "the host launches kernels and runs the modules' code", issue_launches},
}};

}  // namespace

std::span<const LoweringPass> lowering_passes() { return kPasses; }

LoweredLayer lower(LayerKind kind, const LayerTrace& trace, const LayerInputs& inputs,
                   std::size_t passes) {
  LoweredLayer layer = as_traced(kind, trace);
  for (const LoweringPass& pass : lowering_passes().first(passes)) pass.run(layer, inputs);
  return layer;
}

}  // namespace tpsim

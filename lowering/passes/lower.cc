#include "lowering/passes/lower.h"

#include <array>

namespace tpsim {
namespace {

constexpr std::array<LoweringPass, 19> kPasses = {{
    {"attention_heads",
     "GEMMs of heads that share keys are one batched GEMM",
     {.bytes = true},
     merge_attention_heads},
    {"token_dispatch",
     "tokens reach the experts' ranks as the dispatcher sends them",
     {.flops = true, .bytes = true, .sent = true, .memory = true},
     dispatch_tokens},
    {"host_shards",
     "copies of shards in host memory run on copy engines",
     {.flops = true, .bytes = true},
     copy_host_shards},
    {"sharded_weights",
     "weights are gathered module by module",
     {.bytes = true, .sent = true, .memory = true},
     gather_sharded_weights},
    {"context_exchange",
     "keys and values are exchanged in a ring or by all-to-alls",
     {.flops = true, .bytes = true, .sent = true},
     exchange_context},
    {"recompute",
     "forward ops run again before backward",
     {.flops = true, .bytes = true, .sent = true},
     recompute},
    {"early_stop",
     "recompute stops when backward has what it needs",
     {.flops = true, .bytes = true, .sent = true},
     stop_recompute_early},
    {"quantization",
     "operands of linear layers are cast to 8 or 4 bits",
     {.bytes = true, .sent = true, .memory = true},
     quantize},
    {"unfused_kernels",
     "an op becomes the kernels that the framework launches",
     {.memory = true},
     unfuse_kernels},
    {"column_inputs",
     "column-parallel layers copy their inputs",
     {.bytes = true, .sent = true, .memory = true},
     copy_column_inputs},
    {"weight_casts",
     "autocast casts weights and their gradients",
     {.bytes = true, .memory = true},
     cast_weights},
    {"frozen_weights",
     "weights of few bits are dequantized before each GEMM",
     {.bytes = true, .memory = true},
     dequantize_weights},
    {"adapters",
     "dropout, scale and addition of adapters are ops of their own",
     {.bytes = true, .memory = true},
     unfuse_adapters},
    {"loss_head",
     "logits and loss are computed and kept as the framework does",
     {.flops = true, .bytes = true, .sent = true, .memory = true},
     compute_loss},
    {"saved_tensors", "outputs of recomputed ops are not saved", {.memory = true}, drop_recomputed},
    {"token_stash",
     "saved tokens of experts are compacted",
     {.bytes = true, .memory = true},
     stash_tokens},
    {"overlap", "collectives run beside compute", {}, overlap_collectives},
    {"host", "the host launches kernels and runs the modules' code", {}, issue_launches},
    {"frozen_blocks",
     "blocks below all trained weights have no backward",
     {.flops = true, .bytes = true, .sent = true, .memory = true},
     end_in_forward},
}};

constexpr std::array<StepEndPass, 7> kStepEndPasses = {{
    {"optimizer_state",
     "moments and copies of weights have the software's dtypes",
     {.memory = true},
     narrow_optimizer_state},
    {"frozen_weights",
     "frozen weights have the software's dtype",
     {.sent = true, .memory = true},
     store_frozen_weights},
    {"owners",
     "each tensor is updated by one rank",
     {.flops = true, .bytes = true, .sent = true, .memory = true},
     share_among_owners},
    {"narrow_gather",
     "8-bit weights are gathered in 8 bits",
     {.sent = true},
     gather_narrow_weights},
    {"reduction_buckets",
     "gradients are reduced in buckets, and owners send one by one",
     {.sent = true},
     reduce_in_buckets},
    {"unfused_kernels",
     "an op becomes the kernels that the framework launches",
     {},
     unfuse_optimizer},
    {"host", "the host launches kernels", {}, issue_step_end},
}};

// Runs the chosen passes over a layer.
template <class Pass, class Inputs>
void run_passes(std::span<const Pass> passes, const std::bitset<32>& chosen, bool is_verified,
                const Inputs& inputs, LoweredLayer& layer) {
  LayerVerifier verifier;
  if (is_verified) verifier.start(layer);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (!chosen[i]) continue;
    passes[i].run(layer, inputs);
    if (is_verified) verifier.check(layer, passes[i].name, passes[i].changes);
  }
}

template <class Pass>
bool leave_out_of(std::span<const Pass> passes, std::string_view name, std::bitset<32>& chosen) {
  bool found = false;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (passes[i].name != name) continue;
    chosen.reset(i);
    found = true;
  }
  return found;
}

}  // namespace

std::span<const LoweringPass> lowering_passes() { return kPasses; }
std::span<const StepEndPass> step_end_passes() { return kStepEndPasses; }

PassChoice first_passes(std::size_t count) {
  PassChoice choice;
  for (std::size_t i = count; i < choice.layer.size(); ++i) choice.layer.reset(i);
  return choice;
}

bool leave_out(std::string_view name, PassChoice& choice) {
  const bool of_layer = leave_out_of(lowering_passes(), name, choice.layer);
  const bool of_step_end = leave_out_of(step_end_passes(), name, choice.step_end);
  return of_layer || of_step_end;
}

LoweredLayer lower(LayerKind kind, const LayerTrace& trace, const LayerInputs& inputs,
                   const PassChoice& choice) {
  LoweredLayer layer = as_traced(kind, trace);
  run_passes(lowering_passes(), choice.layer, choice.is_verified, inputs, layer);
  return layer;
}

LoweredLayer lower_step_end(LayerKind kind, const StepEndInputs& inputs, const PassChoice& choice) {
  LoweredLayer layer = as_traced(kind, inputs.trace);
  run_passes(step_end_passes(), choice.step_end, choice.is_verified, inputs, layer);
  return layer;
}

}  // namespace tpsim

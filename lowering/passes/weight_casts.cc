// Autocast casts the weights of linear layers to 16 bits in every micro-batch, and their gradients
// back to fp32. A block with full recompute keeps its input in fp32.
#include "core/program/op_dims.h"
#include "lowering/passes/lower.h"
#include "lowering/passes/quantization.h"

namespace tpsim {
namespace {

bool is_cast(const LoweredOp& op) {
  const bool has_weight = is_linear_layer(op) || op.label.part == ModelPart::kHead;
  return op.key.kind == OpKind::kMatmul && has_weight && op.key.dtype != DType::kFloat32;
}

// Returns the extra bytes of a block's saved input in fp32.
double wider_checkpoint(const LoweredLayer& layer) {
  double bytes = 0;
  for_each_op(layer, Phase::kForward, [&](const LoweredOp& op) {
    const bool is_norm = op.key.kind == OpKind::kNormForward && op.key.dtype != DType::kFloat32;
    if (bytes == 0 && is_norm) bytes = 2.0 * product_of(op.key, RowDim::kRows, RowDim::kCols);
  });
  return bytes;
}

}  // namespace

void cast_weights(LoweredLayer& layer, const LayerInputs& inputs) {
  if (inputs.scenario.stack.parts.master_weights != MasterWeights::kAutocast) return;
  double weights = 0, casts = 0;
  for_each_op(layer, Phase::kForward, [&](const LoweredOp& op) {
    if (!is_cast(op)) return;
    weights += op.repeats * others_of(op);
    casts += 1;
  });
  constexpr double kCastBytes = 6;  // bytes per weight: one fp32 and one 16-bit value
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    layer.phase(phase).events.push_back(
        added(layer, LoweredCopy{.label = {ModelPart::kMlpLinear, "autocast.weights"},
                                 .moved = Bytes(kCastBytes * weights),
                                 .kernels = casts}));
  }
  if (layer.kind == LayerKind::kBlock && inputs.plan.recompute == Recompute::kFull) {
    hold(layer, kForwardStart, kBackwardEnd, wider_checkpoint(layer), "autocast.checkpoint");
  }
}

}  // namespace tpsim

// Inputs of column-parallel layers in PaddlePaddle. ColumnParallelLinear copies its input
// (_c_identity in fleet/layers/mpu/mp_ops.py), keeps the copy for backward, and reduces the
// gradient of the copy. Queries, keys, values, gate and up are layers of their own.
#include <algorithm>
#include <set>

#include "core/model/block_shape.h"
#include "lowering/passes/linear_gemm.h"
#include "lowering/passes/lower.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;

constexpr const char* kInputCopies = "tensor_parallel.copies";

// Returns the number of column-parallel layers whose GEMMs the first traced GEMM of the part stands
// for: q, k and v, or gate and up. 0 for other parts.
double layers_reading(ModelPart part, const ModelSpec& block) {
  if (part == ModelPart::kAttentionLinear) return 3;
  if (part == ModelPart::kMlpLinear) return is_gated(block.mlp) ? 2 : 1;
  return 0;
}

void copy_inputs(LoweredLayer& layer, const LayerInputs& inputs, Phase phase) {
  const bool is_saved = keeps_saved_tensors(layer, inputs.plan, phase);
  std::set<ModelPart> seen;  // the second GEMM of a part is that of its row-parallel layer
  rewrite(layer, phase, [&](const LoweredEvent& event, std::vector<LoweredEvent>& events) {
    const LoweredOp* const gemm = event.kind == Kind::kOp ? &layer.ops[event.index] : nullptr;
    const bool is_column = gemm != nullptr && gemm->key.kind == OpKind::kMatmul &&
                           is_forward(*gemm) && seen.insert(gemm->label.part).second;
    const double count = is_column ? layers_reading(gemm->label.part, inputs.block) : 0;
    if (count > 0) {
      const double bytes = inputs_of(*gemm) * static_cast<double>(size_of(gemm->key.dtype));
      events.push_back(added(layer, LoweredCopy{.label = {ModelPart::kMlpLinear, kInputCopies},
                                                .moved = Bytes(2 * count * bytes),
                                                .kernels = count}));
      // The copies are saved instead of the traced input.
      if (is_saved) hold(layer, events, kBackwardEnd, (count - 1) * bytes, kInputCopies);
    }
    events.push_back(event);
  });
}

// Reduces one input gradient for each layer that reads the input. The input gradient's GEMM comes
// before the traced reduction.
void reduce_by_layer(LoweredLayer& layer, const ModelSpec& block) {
  ModelPart part{};  // of the last GEMM
  for (const LoweredEvent& event : layer.phase(Phase::kBackward).events) {
    if (event.kind == Kind::kOp && layer.ops[event.index].key.kind == OpKind::kMatmul) {
      part = layer.ops[event.index].label.part;
    }
    if (event.kind != Kind::kCollective) continue;
    LoweredCollective& record = layer.collectives[event.index];
    const bool is_reduction = record.label.part == ModelPart::kColumnParallelBackward &&
                              record.kind == CollectiveKind::kAllReduce;
    if (is_reduction) record.calls = std::max(1.0, layers_reading(part, block));
  }
}

}  // namespace

void copy_column_inputs(LoweredLayer& layer, const LayerInputs& inputs) {
  const bool copies = inputs.scenario.stack.copies_column_inputs && inputs.plan.degrees.tp > 1;
  if (!copies || layer.kind != LayerKind::kBlock) return;
  for (const Phase phase : {Phase::kForward, Phase::kRecompute}) {
    copy_inputs(layer, inputs, phase);
  }
  reduce_by_layer(layer, inputs.block);
}

}  // namespace tpsim

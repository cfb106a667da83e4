// Inputs of column-parallel layers in PaddlePaddle. ColumnParallelLinear copies its input
// (_c_identity in fleet/layers/mpu/mp_ops.py), keeps the copy for backward, and reduces the
// gradient of the copy. Queries, keys, values, gate and up are layers of their own.
#include <string_view>

#include "core/model/block_shape.h"
#include "lowering/passes/linear_gemm.h"
#include "lowering/passes/lower.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;

constexpr const char* kInputCopies = "tensor_parallel.copies";

// Returns the number of column-parallel layers that read the input of a traced GEMM; 0 for other
// ops.
double layers_reading(const LoweredOp& op, const ModelSpec& block) {
  if (op.key.kind != OpKind::kMatmul || !is_forward(op)) return 0;
  if (op.label.text == std::string_view("attention.qkv")) return 3;
  if (op.label.text == std::string_view("mlp.up")) return is_gated(block.mlp) ? 2 : 1;
  return 0;
}

void copy_inputs(LoweredLayer& layer, const LayerInputs& inputs, Phase phase) {
  const bool is_saved = keeps_saved_tensors(layer, inputs.plan, phase);
  rewrite(layer, phase, [&](const LoweredEvent& event, std::vector<LoweredEvent>& events) {
    const bool is_op = event.kind == Kind::kOp;
    const double count = is_op ? layers_reading(layer.ops[event.index], inputs.block) : 0;
    if (count > 0) {
      const LoweredOp& gemm = layer.ops[event.index];
      const double bytes = inputs_of(gemm) * static_cast<double>(size_of(gemm.key.dtype));
      events.push_back(added(layer, LoweredCopy{.label = {ModelPart::kMlpLinear, kInputCopies},
                                                .moved = Bytes(2 * count * bytes),
                                                .kernels = count}));
      // The copies are saved instead of the traced input.
      if (is_saved) hold(layer, events, kBackwardEnd, (count - 1) * bytes, kInputCopies);
    }
    events.push_back(event);
  });
}

// Reduces one input gradient for each layer that reads the input.
void reduce_by_layer(LoweredLayer& layer, const ModelSpec& block) {
  for (const LoweredEvent& event : layer.phase(Phase::kBackward).events) {
    if (event.kind != Kind::kCollective) continue;
    LoweredCollective& record = layer.collectives[event.index];
    const bool is_reduction = record.label.part == ModelPart::kColumnParallelBackward &&
                              record.kind == CollectiveKind::kAllReduce;
    if (!is_reduction) continue;
    if (record.label.text == std::string_view("attention.backward")) record.calls = 3;
    if (record.label.text == std::string_view("mlp.backward") && is_gated(block.mlp)) {
      record.calls = 2;
    }
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

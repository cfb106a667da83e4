// The pass that replaces the ops of a block by those of its recipe.
#include <algorithm>
#include <array>
#include <utility>

#include "core/program/op_dims.h"
#include "lowering/passes/linear_gemm.h"
#include "lowering/passes/lower.h"
#include "lowering/passes/quantization.h"

namespace tpsim {
namespace {

using Kind = LoweredEvent::Kind;

// By how many bytes quantized inputs of linear layers reduce a block's saved activations. Negative
// if the attention core also saves the 16-bit tensor, because the quantized copy is then
// additional. Call visit() with all forward events of the trace in order.
class SavedInputs {
 public:
  explicit SavedInputs(const LayerInputs& inputs)
      : keeps_(keeps_quantized_weights(inputs.scenario.stack, inputs.plan)),
        narrow_(bytes_per_element(operands_of(inputs.scenario.stack, inputs.plan))),
        wide_(static_cast<double>(size_of(inputs.plan.dtype))),
        part_(inputs.plan.sequence_parallel ? 1 / static_cast<double>(inputs.plan.degrees.tp) : 1) {
  }

  void visit(const CollectiveRecord& record) {
    is_gathered_ = is_gathered_ || is_tensor_gather(record);
  }
  // Returns the bytes that are saved less because of the op.
  double visit(const OpRecord& op) {
    if (!keeps_) return 0;
    double saved = 0;
    const bool is_linear = is_linear_layer(op);
    if (is_linear && is_forward(op) && quantized_.is_new(op)) {
      const double part = is_gathered_ ? part_ : 1;
      saved = part * inputs_of(op) * (is_attention_ ? -narrow_ : wide_ - narrow_);
    }
    if (is_linear) is_gathered_ = false;
    is_attention_ = op.label.part == ModelPart::kAttentionCore;
    return saved;
  }

 private:
  bool keeps_ = false;
  double narrow_ = 0, wide_ = 0, part_ = 1;
  bool is_gathered_ = false, is_attention_ = false;
  QuantizedInputs quantized_;
};

// Replaces the events of a phase by those that the recipe runs.
class QuantizedPhase {
 public:
  QuantizedPhase(LoweredLayer& layer, const LayerInputs& inputs, Phase phase)
      : layer_(layer),
        operands_(inputs.scenario, inputs.plan),
        saved_(inputs),
        is_saved_(keeps_saved_tensors(layer, inputs.plan, phase)) {
    rewrite(layer, phase, [this](const LoweredEvent& event, std::vector<LoweredEvent>& events) {
      visit(event, events);
    });
  }

 private:
  void visit(const LoweredEvent& event, std::vector<LoweredEvent>& events) {
    if (event.kind == Kind::kCollective) {
      LoweredCollective& record = layer_.collectives[event.index];
      saved_.visit(record);
      record.bytes = operands_.sent(record).bytes;
    }
    if (event.kind == Kind::kOp) return visit_op(event, events);
    events.push_back(event);
  }

  void visit_op(const LoweredEvent& event, std::vector<LoweredEvent>& events) {
    const LoweredOp op = layer_.ops[event.index];
    const double saved = saved_.visit(op);
    if (is_saved_) hold(layer_, events, kBackwardEnd, -saved, "quantized input");
    const std::vector<OpRecord> ops = operands_.ops_for(op);
    if (ops.size() == 1 && ops.front().key == op.key) return events.push_back(event);
    bool is_first = event.is_first;
    for (const OpRecord& run : ops) {
      LoweredOp quantized{run};
      quantized.load = op.load;
      events.push_back(added(layer_, quantized));
      events.back().is_first = std::exchange(is_first, false);
    }
  }

  LoweredLayer& layer_;
  QuantizedOperands operands_;
  SavedInputs saved_;
  bool is_saved_ = false;
};

constexpr std::array kPhasesWithGemms = {Phase::kForward, Phase::kBackward, Phase::kWeightGradient};

// Returns the buffer bytes of GEMMs that quantize internally: the operands of the largest GEMM, and
// the largest gradient that stays from dgrad to wgrad. The buffer grows to the largest GEMM and
// stays.
double operand_buffers(const LoweredLayer& layer, const LayerInputs& inputs) {
  if (inputs.plan.precision == Precision::kNone || !inputs.scenario.stack.quantizes_inside_gemm) {
    return 0;
  }
  const double narrow = bytes_per_element(operands_of(inputs.scenario.stack, inputs.plan));
  double largest = 0, kept = 0;
  for (const Phase phase : kPhasesWithGemms) {
    for_each_op(layer, phase, [&](const LoweredOp& op) {
      if (!is_linear_layer(op)) return;
      const double batches = product_of(op.key, GemmDim::kBatch);
      largest = std::max(largest, (inputs_of(op) + others_of(op)) / batches);
      const bool is_input_gradient = !is_forward(op) && !is_weight_gradient(op);
      if (is_input_gradient && is_pair(op)) kept = std::max(kept, inputs_of(op));
    });
  }
  return narrow * (largest + kept);
}

}  // namespace

// Embedding and head compute and gather in the plan's dtype.
void quantize(LoweredLayer& layer, const LayerInputs& inputs) {
  if (layer.kind != LayerKind::kBlock) return;
  if (recipe_of(inputs.scenario.stack, inputs.plan) == Precision::kNone) return;
  const double buffers = operand_buffers(layer, inputs);
  for (const Phase phase : all_of<Phase>()) QuantizedPhase(layer, inputs, phase);
  for (const Phase phase : kPhasesWithGemms) {
    if (layer.phase(phase).events.empty()) continue;
    hold(layer, {phase, Moment::Edge::kStart}, {phase, Moment::Edge::kEnd}, buffers,
         "quantized operands");
  }
}

}  // namespace tpsim

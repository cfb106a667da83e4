#include "reference_model/layers/outer_part.h"

namespace tpsim {
namespace {

std::string layer_prefix(const OuterPart& part, std::int64_t layer) {
  return part.name + ".layers." + std::to_string(layer) + ".";
}

// Returns the width of a layer's input: the number of columns of its first matrix, or `hidden` if
// it has none.
std::int64_t input_width(const OuterPart& part, std::int64_t hidden) {
  for (const PlannedOp& op : part.layer_ops) {
    if (op.kind == PlannedOpKind::kLinear) return op.columns;
  }
  return hidden;
}

}  // namespace

void PlannedPart::specify(const OuterPart& part, SpecList& specs) {
  for (std::int64_t i = 0; i < part.layers; ++i) {
    PlannedOps::specify(part.layer_ops, layer_prefix(part, i), specs);
  }
  PlannedOps::specify(part.ops, part.name + ".", specs);
}

PlannedPart::PlannedPart(const RankContext& context, ParameterUnit& unit, const OuterPart& part)
    : context_(context), part_(part), ops_(context, unit, part.ops, part.name + ".") {
  for (std::int64_t i = 0; i < part.layers; ++i) {
    layers_.emplace_back(context, unit, part.layer_ops, layer_prefix(part, i));
  }
}

void PlannedPart::forward(const Tensor& x, OuterPartSaved& saved) const {
  const std::int64_t positions = part_.patches * part_.items;
  const auto input = [&] {
    if (positions == 0) return x;
    return allocate_activation(context_,
                               {positions, x.shape()[1], input_width(part_, context_.model.hidden)},
                               "part.input");
  };
  saved.layers.resize(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].run_whole(input(), part_.patches, saved.layers[i]);
  }
  ops_.run_whole(input(), part_.patches, saved.ops);
}

void PlannedPart::backward(OuterPartSaved saved) const {
  ops_.run_whole_backward(part_.patches, std::move(saved.ops));
  for (std::size_t i = layers_.size(); i-- > 0;) {
    layers_[i].run_whole_backward(part_.patches, std::move(saved.layers[i]));
  }
}

}  // namespace tpsim

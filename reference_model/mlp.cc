#include "reference_model/mlp.h"

#include <utility>

#include "reference_model/linear.h"
#include "reference_model/mappings.h"
#include "reference_model/norm.h"
#include "reference_model/weight_names.h"

namespace tpsim {
namespace {

constexpr Label kMlpUp{ModelPart::kMlpLinear, "mlp.up"};
constexpr Label kMlpDown{ModelPart::kMlpLinear, "mlp.down"};
constexpr Label kMlpSwiglu{ModelPart::kActivation, "mlp.swiglu"};
constexpr Label kMlpGelu{ModelPart::kActivation, "mlp.gelu"};
constexpr Label kMlpReduced{ModelPart::kColumnParallelBackward, "mlp.backward"};

}  // namespace

MlpShape dense_mlp(const ModelSpec& model) {
  const WeightNames names = names_of(model);
  return {names.up, names.down, model.ffn_hidden, has_mlp_bias(model)};
}

MlpShape shared_expert(const ModelSpec& model) {
  const WeightNames names = names_of(model);
  return {names.shared_up, names.shared_down, model.experts.shared_ffn, false};
}

void Mlp::specify(const RankContext& context, const MlpShape& shape, const std::string& block,
                  std::vector<ParameterSpec>& specs) {
  const ModelSpec& model = context.model;
  const std::int64_t ffn = shape.width / context.plan.degrees.tp;
  for (const std::string& name : shape.up) {
    specs.push_back({.name = block + name + ".weight",
                     .shape = {ffn, model.hidden},
                     .sharding = Sharding::kRows,
                     .deviation = model.initializer_range,
                     .global_rows = shape.width});
    if (!shape.bias) continue;
    specs.push_back({.name = block + name + ".bias",
                     .shape = {ffn},
                     .sharding = Sharding::kRows,
                     .initial = InitialValue::kZeros,
                     .global_rows = shape.width});
  }
  specs.push_back({.name = block + shape.down + ".weight",
                   .shape = {model.hidden, ffn},
                   .sharding = Sharding::kColumns,
                   .deviation = model.initializer_range,
                   .global_rows = model.hidden});
  if (shape.bias) {
    specs.push_back({.name = block + shape.down + ".bias",
                     .shape = {model.hidden},
                     .initial = InitialValue::kZeros,
                     .global_rows = model.hidden});
  }
}

Mlp::Mlp(const RankContext& context, ParameterUnit& unit, const MlpShape& shape,
         const std::string& block)
    : context_(context),
      down_(get_parameter(unit, block + shape.down + ".weight")),
      down_bias_(find_parameter(unit, block + shape.down + ".bias")) {
  for (const std::string& name : shape.up) {
    up_.push_back(&get_parameter(unit, block + name + ".weight"));
    up_biases_.push_back(find_parameter(unit, block + name + ".bias"));
  }
}

// Gated branches have their biases added where they lie; a plain one's is fused with what follows.
void Mlp::add_up_bias(const Tensor& up) const {
  if (!gated() || up_biases_.front() == nullptr) return;
  const std::int64_t ffn = down_.weight.cols();
  for (std::size_t i = 0; i < up_biases_.size(); ++i) {
    Matrix branch = matrix_of(up);
    branch.cols = ffn;
    branch.offset = static_cast<std::int64_t>(i) * ffn;
    context_.device.run(ColumnBias{branch, up_biases_[i]->weight, kMlpUp});
  }
}

void Mlp::up_bias_gradients(const Tensor& dup) const {
  const std::int64_t ffn = down_.weight.cols();
  for (std::size_t i = 0; i < up_biases_.size(); ++i) {
    if (up_biases_[i] == nullptr) continue;
    Matrix branch = matrix_of(dup);
    branch.cols = ffn;
    branch.offset = static_cast<std::int64_t>(i) * ffn;
    zero_if_fresh(context_.device, *up_biases_[i]);
    context_.device.run(ColumnBiasGradient{branch, up_biases_[i]->gradient, kMlpUp});
  }
}

Tensor Mlp::forward(const Tensor& x, MlpSaved& saved) const {
  saved.x = x;
  const Tensor input =
      enter_tensor_parallel(context_, x, {ModelPart::kTensorParallel, "mlp.gather"});
  const Shape& s = input.shape();
  const std::int64_t ffn = down_.weight.cols();
  const auto branches = static_cast<std::int64_t>(up_.size());
  saved.up = allocate_activation(context_, {s[0], s[1], branches * ffn}, kMlpUp.text);
  side_by_side_forward(context_, input, up_, saved.up, kMlpUp);
  saved.active = allocate_activation(context_, {s[0], s[1], ffn}, "mlp.active");
  add_up_bias(saved.up);
  const MlpKind kind = context_.model.mlp;
  if (gated()) {
    const auto limit = static_cast<float>(context_.model.mlp_limit);
    context_.device.run(SwigluForward{saved.up, saved.active, kind, limit, kMlpSwiglu});
  } else {
    const Parameter* bias = up_biases_.front();
    context_.device.run(BiasGeluForward{saved.up, bias != nullptr ? bias->weight : Tensor(),
                                        saved.active, kind, kMlpGelu});
  }
  return linear_forward(context_, saved.active, down_, kMlpDown);
}

// From the result's gradient to that of what was projected up.
Tensor Mlp::up_gradient(const Tensor& dy, MlpSaved& saved) const {
  Tensor dactive = linear_backward(context_, dy, saved.active, down_, kMlpDown);
  saved.active = Tensor();
  Tensor dup = allocate_activation(context_, saved.up.shape(), "mlp.dup");
  const MlpKind kind = context_.model.mlp;
  if (gated()) {
    const auto limit = static_cast<float>(context_.model.mlp_limit);
    context_.device.run(SwigluBackward{dactive, saved.up, dup, kind, limit, kMlpSwiglu});
    up_bias_gradients(dup);
  } else {
    Parameter* const bias = up_biases_.front();
    context_.device.run(BiasGeluBackward{
        dactive, saved.up, bias != nullptr ? bias->weight : Tensor(), dup, kind, kMlpGelu});
    bias_gradient(context_, dup, bias, "mlp.up_bias");
  }
  saved.up = Tensor();
  return dup;
}

Tensor Mlp::backward(const Tensor& dy, MlpSaved saved) const {
  Tensor dup = up_gradient(dy, saved);
  Tensor x = enter_tensor_parallel(context_, saved.x,
                                   {ModelPart::kColumnParallelBackward, "mlp.regather"});
  if (!leaves_beside(context_)) {
    Tensor dx = side_by_side_backward(context_, dup, x, up_, kMlpUp);
    dup = x = Tensor();
    return leave_tensor_parallel(context_, std::move(dx), kMlpReduced);
  }
  Tensor dx = side_by_side_input_gradient(context_, dup, x.shape(), up_, kMlpUp);
  return leave_beside(context_, std::move(dx), kMlpReduced,
                      [&] { side_by_side_weight_gradient(context_, dup, x, up_, kMlpUp); });
}

}  // namespace tpsim

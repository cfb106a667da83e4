#include "reference_model/mlp.h"

#include "reference_model/linear.h"
#include "reference_model/mappings.h"
#include "reference_model/norm.h"

namespace tpsim {
namespace {

constexpr Label kMlpUp{ModelPart::kLinear, "mlp.up"};
constexpr Label kMlpDown{ModelPart::kLinear, "mlp.down"};
constexpr Label kMlpSwiglu{ModelPart::kActivation, "mlp.swiglu"};
constexpr Label kMlpGelu{ModelPart::kActivation, "mlp.gelu"};

std::vector<std::string> up_names(const ModelSpec& model) {
  if (model.mlp == MlpKind::kSwiglu) return {"mlp.gate_proj", "mlp.up_proj"};
  return {"mlp.dense_h_to_4h"};
}

std::string down_name(const ModelSpec& model) {
  return model.mlp == MlpKind::kSwiglu ? "mlp.down_proj" : "mlp.dense_4h_to_h";
}

}  // namespace

void Mlp::specify(const RankContext& context, const std::string& block,
                  std::vector<ParameterSpec>& specs) {
  const ModelSpec& model = context.model;
  const std::int64_t ffn = model.ffn_hidden / context.plan.degrees.tp;
  for (const std::string& name : up_names(model)) {
    specs.push_back({.name = block + name + ".weight",
                     .shape = {ffn, model.hidden},
                     .sharding = Sharding::kRows,
                     .deviation = model.initializer_range,
                     .global_rows = model.ffn_hidden});
    if (!model.linear_bias) continue;
    specs.push_back({.name = block + name + ".bias",
                     .shape = {ffn},
                     .sharding = Sharding::kRows,
                     .initial = InitialValue::kZeros,
                     .global_rows = model.ffn_hidden});
  }
  specs.push_back({.name = block + down_name(model) + ".weight",
                   .shape = {model.hidden, ffn},
                   .sharding = Sharding::kColumns,
                   .deviation = model.initializer_range,
                   .global_rows = model.hidden});
  if (model.linear_bias) {
    specs.push_back({.name = block + down_name(model) + ".bias",
                     .shape = {model.hidden},
                     .initial = InitialValue::kZeros,
                     .global_rows = model.hidden});
  }
}

Mlp::Mlp(const RankContext& context, ParameterUnit& unit, const std::string& block)
    : context_(context),
      up_bias_(find_parameter(unit, block + up_names(context.model).front() + ".bias")),
      down_(get_parameter(unit, block + down_name(context.model) + ".weight")),
      down_bias_(find_parameter(unit, block + down_name(context.model) + ".bias")) {
  for (const std::string& name : up_names(context.model)) {
    up_.push_back(&get_parameter(unit, block + name + ".weight"));
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
  if (gated()) {
    context_.device.run(SwigluForward{saved.up, saved.active, kMlpSwiglu});
  } else {
    const Tensor bias = up_bias_ != nullptr ? up_bias_->weight : Tensor();
    context_.device.run(BiasGeluForward{saved.up, bias, saved.active, kMlpGelu});
  }
  return linear_forward(context_, saved.active, down_.weight, kMlpDown);
}

Tensor Mlp::backward(const Tensor& dy, MlpSaved saved) const {
  Tensor dactive = linear_input_gradient(context_, dy, down_.weight, kMlpDown);
  linear_weight_gradient(context_, dy, saved.active, down_, kMlpDown);
  saved.active = Tensor();
  Tensor dup = allocate_activation(context_, saved.up.shape(), "mlp.dup");
  if (gated()) {
    context_.device.run(SwigluBackward{dactive, saved.up, dup, kMlpSwiglu});
  } else {
    const Tensor bias = up_bias_ != nullptr ? up_bias_->weight : Tensor();
    context_.device.run(BiasGeluBackward{dactive, saved.up, bias, dup, kMlpGelu});
    bias_gradient(context_, dup, up_bias_, "mlp.up_bias");
  }
  dactive = saved.up = Tensor();

  const Tensor x = enter_tensor_parallel(context_, saved.x,
                                         {ModelPart::kColumnParallelBackward, "mlp.regather"});
  return side_by_side_backward(context_, dup, x, up_, kMlpUp);
}

}  // namespace tpsim

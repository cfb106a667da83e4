#include "reference_model/layers/mlp.h"

#include <utility>

#include "reference_model/layers/linear.h"
#include "reference_model/layers/norm.h"
#include "reference_model/layers/weight_names.h"
#include "reference_model/parallel/mappings.h"

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

void activate(const RankContext& context, const Tensor& up, const Tensor& bias,
              const Tensor& active, const Label& label) {
  const ModelSpec& model = context.model;
  if (is_gated(model.mlp)) {
    const auto limit = static_cast<float>(model.mlp_limit);
    context.device.run(SwigluForward{up, active, model.mlp, limit, label});
  } else {
    context.device.run(BiasGeluForward{up, bias, active, model.mlp, label});
  }
}

void activate_backward(const RankContext& context, const Tensor& dactive, const Tensor& up,
                       const Tensor& bias, const Tensor& dup, const Label& label) {
  const ModelSpec& model = context.model;
  if (is_gated(model.mlp)) {
    const auto limit = static_cast<float>(model.mlp_limit);
    context.device.run(SwigluBackward{dactive, up, dup, model.mlp, limit, label});
  } else {
    context.device.run(BiasGeluBackward{dactive, up, bias, dup, model.mlp, label});
  }
}

void ParallelMLP::specify(const MlpShape& shape, SpecList& specs) {
  const std::int64_t hidden = specs.model().hidden;
  // The last matrix of a gated MLP is `up`.
  for (const std::string& name : shape.up) {
    const bool is_gate = shape.up.size() > 1 && &name == &shape.up.front();
    specs.linear(name, {shape.width, hidden}, Sharding::kRows, shape.bias,
                 part_bit(is_gate ? WeightPart::kGate : WeightPart::kUp));
  }
  specs.linear(shape.down, {hidden, shape.width}, Sharding::kColumns, shape.bias,
               part_bit(WeightPart::kDown));
}

ParallelMLP::ParallelMLP(const RankContext& context, ParameterUnit& unit, const MlpShape& shape,
                         const std::string& block)
    : context_(context),
      down_(get_parameter(unit, block + shape.down + ".weight")),
      down_bias_(find_parameter(unit, block + shape.down + ".bias")) {
  for (const std::string& name : shape.up) {
    up_.push_back(&get_parameter(unit, block + name + ".weight"));
    up_biases_.push_back(find_parameter(unit, block + name + ".bias"));
  }
}

Tensor ParallelMLP::fused_bias() const {
  return gated() ? Tensor() : weight_of(up_biases_.front());
}

const Label& ParallelMLP::activation_label() const { return gated() ? kMlpSwiglu : kMlpGelu; }

void ParallelMLP::add_up_bias(const Tensor& up) const {
  if (!gated() || up_biases_.front() == nullptr) return;
  const std::int64_t ffn = down_.weight.cols();
  for (std::size_t i = 0; i < up_biases_.size(); ++i) {
    const Matrix branch = columns_of(up, static_cast<std::int64_t>(i) * ffn, ffn);
    context_.device.run(ColumnBias{branch, up_biases_[i]->weight, kMlpUp});
  }
}

void ParallelMLP::up_bias_gradients(const Tensor& dup) const {
  const std::int64_t ffn = down_.weight.cols();
  for (std::size_t i = 0; i < up_biases_.size(); ++i) {
    if (up_biases_[i] == nullptr || !up_biases_[i]->is_trained()) continue;
    const Matrix branch = columns_of(dup, static_cast<std::int64_t>(i) * ffn, ffn);
    const Tensor gradient = gradient_of(context_.device, up_biases_[i]);
    context_.device.run(ColumnBiasGradient{branch, gradient, kMlpUp});
  }
}

Tensor ParallelMLP::forward(const Tensor& x, MlpSaved& saved) const {
  const Tensor input =
      enter_tensor_parallel(context_, x, {ModelPart::kTensorParallel, "mlp.gather"});
  if (needs_input(up_)) saved.x = kept_input(context_, x, input);
  const Shape& s = input.shape();
  const std::int64_t ffn = down_.weight.cols();
  const auto branches = static_cast<std::int64_t>(up_.size());
  saved.up = allocate_activation(context_, {s[0], s[1], branches * ffn}, kMlpUp.text);
  side_by_side_forward(context_, input, up_, saved.adapters, saved.up, kMlpUp);
  saved.active = allocate_activation(context_, {s[0], s[1], ffn}, "mlp.active");
  add_up_bias(saved.up);
  activate(context_, saved.up, fused_bias(), saved.active, activation_label());
  Tensor y = linear_forward(context_, saved.active, down_, saved.adapters, kMlpDown);
  if (!needs_input(down_)) saved.active = Tensor();
  return y;
}

// Returns the gradient of the up projection's output, from the gradient of the down projection's
// output.
Tensor ParallelMLP::up_gradient(const Tensor& dy, MlpSaved& saved) const {
  Tensor dactive = linear_backward(context_, dy, saved.active, down_, saved.adapters, kMlpDown);
  saved.active = Tensor();
  Tensor dup = allocate_activation(context_, saved.up.shape(), "mlp.dup");
  activate_backward(context_, dactive, saved.up, fused_bias(), dup, activation_label());
  if (gated()) {
    up_bias_gradients(dup);
  } else {
    bias_gradient(context_, dup, up_biases_.front(), "mlp.up_bias");
  }
  saved.up = Tensor();
  return dup;
}

Tensor ParallelMLP::backward(const Tensor& dy, MlpSaved saved) const {
  Tensor dup = up_gradient(dy, saved);
  Tensor x =
      regather_input(context_, saved.x, {ModelPart::kColumnParallelBackward, "mlp.regather"});
  if (!overlaps_input_gradient_reduction(context_)) {
    Tensor dx = side_by_side_backward(context_, dup, x, up_, saved.adapters, kMlpUp);
    dup = x = Tensor();
    return leave_tensor_parallel(context_, std::move(dx), kMlpReduced);
  }
  Tensor dx = side_by_side_input_gradient(context_, dup, up_, saved.adapters, kMlpUp);
  return leave_overlapped(context_, std::move(dx), kMlpReduced, [&] {
    side_by_side_weight_gradient(context_, dup, x, up_, saved.adapters, kMlpUp);
  });
}

}  // namespace tpsim

#include "reference_model/linear.h"

namespace tpsim {
namespace {

// Neighbours that lie one behind the other in memory become one.
std::vector<Tensor> joined(const std::vector<Parameter*>& parameters, Tensor Parameter::*member) {
  std::vector<Tensor> parts;
  for (const Parameter* parameter : parameters) {
    const Tensor& next = parameter->*member;
    if (!parts.empty() && parts.back().continues_in(next)) {
      parts.back() = parts.back().joined_with(next);
    } else {
      parts.push_back(next);
    }
  }
  return parts;
}

}  // namespace

Matmul with_recipe(const RankContext& context, Matmul product) {
  const ModelPart part = product.label.part;
  if (!is_linear(part)) return product;
  const bool is_weight_gradient = product.a.transposed;
  const bool is_forward = !is_weight_gradient && product.b.transposed;
  product.rounding = {.recipe = context.plan.precision,
                      .a_is_gradient = !is_forward,
                      .b_is_weight = !is_weight_gradient};
  return product;
}

Tensor linear_forward(const RankContext& context, const Tensor& x, const Tensor& weight,
                      const Label& label) {
  const Shape& s = x.shape();
  Tensor y = allocate_activation(context, {s[0], s[1], weight.rows()}, label.text);
  context.device.run(with_recipe(
      context,
      Matmul{.a = matrix_of(x), .b = matrix_of(weight, true), .c = matrix_of(y), .label = label}));
  return y;
}

Tensor linear_input_gradient(const RankContext& context, const Tensor& dy, const Tensor& weight,
                             const Label& label) {
  const Shape& s = dy.shape();
  Tensor dx = allocate_activation(context, {s[0], s[1], weight.cols()}, label.text);
  context.device.run(with_recipe(
      context,
      Matmul{.a = matrix_of(dy), .b = matrix_of(weight), .c = matrix_of(dx), .label = label}));
  return dx;
}

void linear_weight_gradient(const RankContext& context, const Tensor& dy, const Tensor& x,
                            Parameter& weight, const Label& label) {
  context.device.run(with_recipe(context, Matmul{.a = matrix_of(dy, true),
                                                 .b = matrix_of(x),
                                                 .c = matrix_of(weight.gradient),
                                                 .beta = accumulation_beta(weight),
                                                 .label = label}));
}

void side_by_side_forward(const RankContext& context, const Tensor& x,
                          const std::vector<Parameter*>& weights, const Tensor& y,
                          const Label& label) {
  std::int64_t column = 0;
  for (const Tensor& weight : joined(weights, &Parameter::weight)) {
    Matrix out = matrix_of(y);
    out.cols = weight.rows();
    out.offset = column;
    context.device.run(with_recipe(
        context,
        Matmul{.a = matrix_of(x), .b = matrix_of(weight, true), .c = out, .label = label}));
    column += weight.rows();
  }
}

Tensor side_by_side_backward(const RankContext& context, const Tensor& dy, const Tensor& x,
                             const std::vector<Parameter*>& weights, const Label& label) {
  Tensor dx = allocate_activation(context, x.shape(), label.text);
  const std::vector<Tensor> matrices = joined(weights, &Parameter::weight);
  const std::vector<Tensor> gradients = joined(weights, &Parameter::gradient);
  TPSIM_CHECK(matrices.size() == gradients.size(), "weights and gradients lie differently");
  float beta = 0;
  for (Parameter* weight : weights) beta = accumulation_beta(*weight);  // all are fresh, or none
  std::int64_t column = 0;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    Matrix part = matrix_of(dy);
    part.cols = matrices[i].rows();
    part.offset = column;
    context.device.run(with_recipe(context, Matmul{.a = part,
                                                   .b = matrix_of(matrices[i]),
                                                   .c = matrix_of(dx),
                                                   .beta = i == 0 ? 0.0F : 1.0F,
                                                   .label = label}));
    part.transposed = true;
    context.device.run(with_recipe(context, Matmul{.a = part,
                                                   .b = matrix_of(x),
                                                   .c = matrix_of(gradients[i]),
                                                   .beta = beta,
                                                   .label = label}));
    column += matrices[i].rows();
  }
  return dx;
}

void bias_gradient(const RankContext& context, const Tensor& dy, Parameter* bias,
                   const char* label) {
  if (bias == nullptr) return;
  zero_if_fresh(context.device, *bias);
  context.device.run(ColumnSum{dy, bias->gradient, {ModelPart::kBiasGradient, label}});
}

}  // namespace tpsim

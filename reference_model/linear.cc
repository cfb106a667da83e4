#include "reference_model/linear.h"

#include "reference_model/delayed_scales.h"

namespace tpsim {
namespace {

// Neighbours that lie one behind the other in memory become one, with the scales of the first.
struct Joined {
  Tensor tensor;
  Tensor scales;
};
std::vector<Joined> joined(const std::vector<Parameter*>& parameters, Tensor Parameter::*member) {
  std::vector<Joined> parts;
  for (const Parameter* parameter : parameters) {
    const Tensor& next = parameter->*member;
    if (!parts.empty() && parts.back().tensor.continues_in(next)) {
      parts.back().tensor = parts.back().tensor.joined_with(next);
    } else {
      parts.push_back({next, parameter->scales});
    }
  }
  return parts;
}

// All are fresh, or none.
float common_beta(const std::vector<Parameter*>& weights) {
  float beta = 0;
  for (Parameter* weight : weights) beta = accumulation_beta(*weight);
  return beta;
}

// Gradients of results are rounded for the input's product, and the weight's follows.
Matmul first_of_pair(Matmul product) {
  product.rounding.keeps_a = true;
  return product;
}
Matmul second_of_pair(Matmul product) {
  product.rounding.takes_kept_a = true;
  return product;
}

// dx = dy weight of the first columns of all gradients, dx += dy weight of those behind them.
Matmul input_gradient(const RankContext& context, const Matrix& dy, const Joined& weight,
                      const Tensor& dx, const Label& label) {
  return with_recipe(context,
                     Matmul{.a = dy,
                            .b = matrix_of(weight.tensor),
                            .c = matrix_of(dx),
                            .beta = dy.offset == 0 ? 0.0F : 1.0F,
                            .label = label},
                     weight.scales);
}

struct SummedGradient {
  Joined of;
  float beta = 1;
};
Matmul weight_gradient(const RankContext& context, Matrix dy, const Tensor& x,
                       const SummedGradient& gradient, const Label& label) {
  dy.transposed = true;
  return with_recipe(context,
                     Matmul{.a = dy,
                            .b = matrix_of(x),
                            .c = matrix_of(gradient.of.tensor),
                            .beta = gradient.beta,
                            .label = label},
                     gradient.of.scales);
}

}  // namespace

Matrix columns_of(const Tensor& x, std::int64_t first, std::int64_t count) {
  Matrix columns = matrix_of(x);
  columns.cols = count;
  columns.offset = first;
  return columns;
}

Matmul with_recipe(const RankContext& context, Matmul product, const Tensor& scales) {
  const ModelPart part = product.label.part;
  if (!is_linear(part)) return product;
  const bool is_weight_gradient = product.a.transposed;
  const bool is_forward = !is_weight_gradient && product.b.transposed;
  product.rounding = {.recipe = context.plan.precision,
                      .a_is_gradient = !is_forward,
                      .b_is_weight = !is_weight_gradient};
  if (scales.defined() && context.scales != nullptr) {
    constexpr std::int64_t kOfInput = 0, kOfWeight = 2, kOfGradient = 4;
    product.rounding.a_scale = scales.slice(is_forward ? kOfInput : kOfGradient, 2);
    product.rounding.b_scale = scales.slice(is_weight_gradient ? kOfInput : kOfWeight, 2);
    product.rounding.finds_scales = !context.scales->has_history();
  }
  return product;
}

Tensor linear_forward(const RankContext& context, const Tensor& x, const Parameter& weight,
                      const Label& label) {
  const Shape& s = x.shape();
  Tensor y = allocate_activation(context, {s[0], s[1], weight.weight.rows()}, label.text);
  context.device.run(with_recipe(context,
                                 Matmul{.a = matrix_of(x),
                                        .b = matrix_of(weight.weight, true),
                                        .c = matrix_of(y),
                                        .label = label},
                                 weight.scales));
  return y;
}

Tensor linear_input_gradient(const RankContext& context, const Tensor& dy, const Parameter& weight,
                             const Label& label) {
  const Shape& s = dy.shape();
  Tensor dx = allocate_activation(context, {s[0], s[1], weight.weight.cols()}, label.text);
  context.device.run(with_recipe(
      context,
      Matmul{.a = matrix_of(dy), .b = matrix_of(weight.weight), .c = matrix_of(dx), .label = label},
      weight.scales));
  return dx;
}

void linear_weight_gradient(const RankContext& context, const Tensor& dy, const Tensor& x,
                            Parameter& weight, const Label& label) {
  context.device.run(with_recipe(context,
                                 Matmul{.a = matrix_of(dy, true),
                                        .b = matrix_of(x),
                                        .c = matrix_of(weight.gradient),
                                        .beta = accumulation_beta(weight),
                                        .label = label},
                                 weight.scales));
}

Tensor linear_backward(const RankContext& context, const Tensor& dy, const Tensor& x,
                       Parameter& weight, const Label& label) {
  const Shape& s = dy.shape();
  Tensor dx = allocate_activation(context, {s[0], s[1], weight.weight.cols()}, label.text);
  const Joined matrix{weight.weight, weight.scales};
  context.device.run(first_of_pair(input_gradient(context, matrix_of(dy), matrix, dx, label)));
  const SummedGradient gradient{{weight.gradient, weight.scales}, accumulation_beta(weight)};
  context.device.run(second_of_pair(weight_gradient(context, matrix_of(dy), x, gradient, label)));
  return dx;
}

void side_by_side_forward(const RankContext& context, const Tensor& x,
                          const std::vector<Parameter*>& weights, const Tensor& y,
                          const Label& label) {
  std::int64_t column = 0;
  for (const Joined& weight : joined(weights, &Parameter::weight)) {
    const Matrix out = columns_of(y, column, weight.tensor.rows());
    context.device.run(with_recipe(
        context,
        Matmul{.a = matrix_of(x), .b = matrix_of(weight.tensor, true), .c = out, .label = label},
        weight.scales));
    column += weight.tensor.rows();
  }
}

Tensor side_by_side_input_gradient(const RankContext& context, const Tensor& dy, const Shape& x,
                                   const std::vector<Parameter*>& weights, const Label& label) {
  Tensor dx = allocate_activation(context, x, label.text);
  const std::vector<Joined> matrices = joined(weights, &Parameter::weight);
  std::int64_t column = 0;
  for (const Joined& matrix : matrices) {
    const std::int64_t rows = matrix.tensor.rows();
    Matmul product = input_gradient(context, columns_of(dy, column, rows), matrix, dx, label);
    context.device.run(matrices.size() == 1 ? first_of_pair(product) : product);
    column += rows;
  }
  return dx;
}

void side_by_side_weight_gradient(const RankContext& context, const Tensor& dy, const Tensor& x,
                                  const std::vector<Parameter*>& weights, const Label& label) {
  const float beta = common_beta(weights);
  const std::vector<Joined> gradients = joined(weights, &Parameter::gradient);
  std::int64_t column = 0;
  for (const Joined& gradient : gradients) {
    const std::int64_t rows = gradient.tensor.rows();
    Matmul product =
        weight_gradient(context, columns_of(dy, column, rows), x, {gradient, beta}, label);
    context.device.run(gradients.size() == 1 ? second_of_pair(product) : product);
    column += rows;
  }
}

Tensor side_by_side_backward(const RankContext& context, const Tensor& dy, const Tensor& x,
                             const std::vector<Parameter*>& weights, const Label& label) {
  Tensor dx = allocate_activation(context, x.shape(), label.text);
  const std::vector<Joined> matrices = joined(weights, &Parameter::weight);
  const std::vector<Joined> gradients = joined(weights, &Parameter::gradient);
  TPSIM_CHECK(matrices.size() == gradients.size(), "weights and gradients lie differently");
  const float beta = common_beta(weights);
  std::int64_t column = 0;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const std::int64_t rows = matrices[i].tensor.rows();
    const Matrix part = columns_of(dy, column, rows);
    context.device.run(first_of_pair(input_gradient(context, part, matrices[i], dx, label)));
    context.device.run(
        second_of_pair(weight_gradient(context, part, x, {gradients[i], beta}, label)));
    column += rows;
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

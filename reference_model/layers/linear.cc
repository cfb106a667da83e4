#include "reference_model/layers/linear.h"

#include <algorithm>

#include "reference_model/parallel/delayed_scales.h"
#include "reference_model/parallel/weight_gradients.h"

namespace tpsim {
namespace {

// A weight or gradient, joined from the tensors of parameters that are adjacent in memory. `scales`
// belong to the first parameter.
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

// Returns accumulation_beta() of the weights. Either all gradients are fresh, or none is.
float common_beta(const std::vector<Parameter*>& weights) {
  float beta = 0;
  for (Parameter* weight : weights) beta = accumulation_beta(*weight);
  return beta;
}

// The dgrad GEMM quantizes dy and keeps the result; the wgrad GEMM that follows reuses it. In a
// split backward, other GEMMs run between both.
Matmul first_of_pair(const RankContext& context, Matmul product) {
  product.rounding.keeps_a = context.weight_gradients == nullptr;
  return product;
}
Matmul second_of_pair(const RankContext& context, Matmul product) {
  product.rounding.takes_kept_a = context.weight_gradients == nullptr;
  return product;
}

void run_wgrad(const RankContext& context, Matmul product) {
  run_weight_gradient(
      context, [&device = context.device, product = std::move(product)] { device.run(product); });
}

Matmul forward_product(const RankContext& context, const Matrix& x, const Joined& weight,
                       const Matrix& y, const Label& label) {
  return with_recipe(context,
                     Matmul{.a = x, .b = matrix_of(weight.tensor, true), .c = y, .label = label},
                     weight.scales);
}

Matmul input_gradient(const RankContext& context, const Matrix& dy, const Joined& weight,
                      const Matrix& dx, float beta, const Label& label) {
  return with_recipe(
      context,
      Matmul{.a = dy, .b = matrix_of(weight.tensor), .c = dx, .beta = beta, .label = label},
      weight.scales);
}

Matmul weight_gradient(const RankContext& context, Matrix dy, const Matrix& x,
                       const Joined& gradient, float beta, const Label& label) {
  dy.transposed = true;
  return with_recipe(
      context,
      Matmul{.a = dy, .b = x, .c = matrix_of(gradient.tensor), .beta = beta, .label = label},
      gradient.scales);
}

// dgrad of several weights with the same input: the weight of the first columns of dy overwrites
// dx, the following weights add to dx.
Matmul input_gradient(const RankContext& context, const Matrix& dy, const Joined& weight,
                      const Tensor& dx, const Label& label) {
  return input_gradient(context, dy, weight, matrix_of(dx), dy.offset == 0 ? 0.0F : 1.0F, label);
}

// Calls work(part, columns of x) for each part. The outputs of the parts are adjacent columns of x.
template <class Work>
void for_each_columns(const std::vector<Joined>& parts, const Tensor& x, const Work& work) {
  std::int64_t column = 0;
  for (const Joined& part : parts) {
    work(part, columns_of(x, column, part.tensor.rows()));
    column += part.tensor.rows();
  }
}

bool has_frozen(const std::vector<Parameter*>& weights) {
  return std::any_of(weights.begin(), weights.end(),
                     [](const Parameter* weight) { return !weight->is_trained(); });
}

// Calls work(weight, its columns of y) for each weight.
template <class Work>
void for_each_weight(const std::vector<Parameter*>& weights, const Tensor& y, const Work& work) {
  std::int64_t column = 0;
  for (const Parameter* weight : weights) {
    work(*weight, columns_of(y, column, weight->weight.rows()));
    column += weight->weight.rows();
  }
}

Tensor allocate_input_gradient(const RankContext& context, const Tensor& dy,
                               const std::vector<Parameter*>& weights, const Label& label) {
  const Shape& s = dy.shape();
  return allocate_activation(context, {s[0], s[1], weights.front()->weight.cols()}, label.text);
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
    constexpr std::int64_t kOfInput = 0, kOfWeight = kScaleStride, kOfGradient = 2 * kScaleStride;
    product.rounding.a_scale = scales.slice(is_forward ? kOfInput : kOfGradient, 2);
    product.rounding.b_scale = scales.slice(is_weight_gradient ? kOfInput : kOfWeight, 2);
    product.rounding.finds_scales = !context.scales->has_history();
  }
  return product;
}

void linear_forward(const RankContext& context, const Matrix& x, const Parameter& weight,
                    const Matrix& y, const Label& label) {
  context.device.run(forward_product(context, x, {weight.weight, weight.scales}, y, label));
}

void linear_input_gradient(const RankContext& context, const Matrix& dy, const Parameter& weight,
                           const Matrix& dx, float beta, const Label& label) {
  const Joined matrix{weight.weight, weight.scales};
  context.device.run(input_gradient(context, dy, matrix, dx, beta, label));
}

void linear_weight_gradient(const RankContext& context, const Matrix& dy, const Matrix& x,
                            Parameter& weight, const Label& label) {
  if (!weight.is_trained()) return;
  const Joined gradient{weight.gradient, weight.scales};
  run_wgrad(context, weight_gradient(context, dy, x, gradient, accumulation_beta(weight), label));
}

Tensor linear_forward(const RankContext& context, const Tensor& x, const Parameter& weight,
                      const Label& label) {
  const Shape& s = x.shape();
  Tensor y = allocate_activation(context, {s[0], s[1], weight.weight.rows()}, label.text);
  linear_forward(context, matrix_of(x), weight, matrix_of(y), label);
  return y;
}

Tensor linear_forward(const RankContext& context, const Tensor& x, const Parameter& weight,
                      AdapterSaved& adapters, const Label& label) {
  Tensor y = linear_forward(context, x, weight, label);
  adapter_forward(context, matrix_of(x), weight, matrix_of(y), adapters);
  return y;
}

Tensor linear_input_gradient(const RankContext& context, const Tensor& dy, const Parameter& weight,
                             const Label& label) {
  const Shape& s = dy.shape();
  Tensor dx = allocate_activation(context, {s[0], s[1], weight.weight.cols()}, label.text);
  linear_input_gradient(context, matrix_of(dy), weight, matrix_of(dx), 0, label);
  return dx;
}

Tensor linear_backward(const RankContext& context, const Tensor& dy, const Tensor& x,
                       Parameter& weight, AdapterSaved& adapters, const Label& label) {
  return side_by_side_backward(context, dy, x, {&weight}, adapters, label);
}

void side_by_side_forward(const RankContext& context, const Tensor& x,
                          const std::vector<Parameter*>& weights, AdapterSaved& adapters,
                          const Tensor& y, const Label& label) {
  for_each_columns(
      joined(weights, &Parameter::weight), y, [&](const Joined& weight, const Matrix& columns) {
        context.device.run(forward_product(context, matrix_of(x), weight, columns, label));
      });
  for_each_weight(weights, y, [&](const Parameter& weight, const Matrix& columns) {
    adapter_forward(context, matrix_of(x), weight, columns, adapters);
  });
}

Tensor side_by_side_input_gradient(const RankContext& context, const Tensor& dy,
                                   const std::vector<Parameter*>& weights, AdapterSaved& adapters,
                                   const Label& label) {
  Tensor dx = allocate_input_gradient(context, dy, weights, label);
  const std::vector<Joined> matrices = joined(weights, &Parameter::weight);
  for_each_columns(matrices, dy, [&](const Joined& matrix, const Matrix& columns) {
    Matmul product = input_gradient(context, columns, matrix, dx, label);
    context.device.run(matrices.size() == 1 ? first_of_pair(context, product) : product);
  });
  for_each_weight(weights, dy, [&](const Parameter& weight, const Matrix& columns) {
    adapter_input_gradient(context, columns, weight, matrix_of(dx), adapters);
  });
  return dx;
}

void side_by_side_weight_gradient(const RankContext& context, const Tensor& dy, const Tensor& x,
                                  const std::vector<Parameter*>& weights, AdapterSaved& adapters,
                                  const Label& label) {
  if (!needs_input(weights)) return;
  for_each_weight(weights, dy, [&](const Parameter& weight, const Matrix& columns) {
    adapter_weight_gradient(context, columns, matrix_of(x), weight, adapters);
  });
  if (has_frozen(weights)) {
    std::int64_t column = 0;
    for (Parameter* weight : weights) {
      const Matrix columns = columns_of(dy, column, weight->weight.rows());
      linear_weight_gradient(context, columns, matrix_of(x), *weight, label);
      column += weight->weight.rows();
    }
    return;
  }
  const float beta = common_beta(weights);
  const std::vector<Joined> gradients = joined(weights, &Parameter::gradient);
  for_each_columns(gradients, dy, [&](const Joined& gradient, const Matrix& columns) {
    Matmul product = weight_gradient(context, columns, matrix_of(x), gradient, beta, label);
    run_wgrad(context, gradients.size() == 1 ? second_of_pair(context, product) : product);
  });
}

Tensor side_by_side_backward(const RankContext& context, const Tensor& dy, const Tensor& x,
                             const std::vector<Parameter*>& weights, AdapterSaved& adapters,
                             const Label& label) {
  if (has_frozen(weights)) {
    Tensor dx = side_by_side_input_gradient(context, dy, weights, adapters, label);
    side_by_side_weight_gradient(context, dy, x, weights, adapters, label);
    return dx;
  }
  Tensor dx = allocate_input_gradient(context, dy, weights, label);
  const std::vector<Joined> matrices = joined(weights, &Parameter::weight);
  const std::vector<Joined> gradients = joined(weights, &Parameter::gradient);
  TPSIM_CHECK(matrices.size() == gradients.size(), "weights and gradients lie differently");
  const float beta = common_beta(weights);
  auto gradient = gradients.begin();
  for_each_columns(matrices, dy, [&](const Joined& matrix, const Matrix& columns) {
    context.device.run(first_of_pair(context, input_gradient(context, columns, matrix, dx, label)));
    run_wgrad(context, second_of_pair(context, weight_gradient(context, columns, matrix_of(x),
                                                               *gradient++, beta, label)));
  });
  return dx;
}

void bias_gradient(const RankContext& context, const Tensor& dy, Parameter* bias,
                   const char* label) {
  if (bias == nullptr || !bias->is_trained()) return;
  context.device.run(
      ColumnSum{dy, gradient_of(context.device, bias), {ModelPart::kBiasGradient, label}});
}

}  // namespace tpsim

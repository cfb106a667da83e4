#include "reference_model/linear.h"

namespace tpsim {

Tensor linear_forward(const RankContext& context, const Tensor& x, const Tensor& weight,
                      const char* label) {
  const Shape& s = x.shape();
  Tensor y = allocate_activation(context, {s[0], s[1], weight.rows()}, label);
  context.device.run(
      Matmul{.a = matrix_of(x), .b = matrix_of(weight, true), .c = matrix_of(y), .label = label});
  return y;
}

Tensor linear_input_gradient(const RankContext& context, const Tensor& dy, const Tensor& weight,
                             const char* label) {
  const Shape& s = dy.shape();
  Tensor dx = allocate_activation(context, {s[0], s[1], weight.cols()}, label);
  context.device.run(
      Matmul{.a = matrix_of(dy), .b = matrix_of(weight), .c = matrix_of(dx), .label = label});
  return dx;
}

void linear_weight_gradient(const RankContext& context, const Tensor& dy, const Tensor& x,
                            Parameter& weight, const char* label) {
  context.device.run(Matmul{.a = matrix_of(dy, true),
                            .b = matrix_of(x),
                            .c = matrix_of(weight.gradient),
                            .beta = accumulation_beta(weight),
                            .label = label});
}

void bias_gradient(const RankContext& context, const Tensor& dy, Parameter* bias,
                   const char* label) {
  if (bias == nullptr) return;
  zero_if_fresh(context.device, *bias);
  context.device.run(ColumnSum{dy, bias->gradient, label});
}

}  // namespace tpsim

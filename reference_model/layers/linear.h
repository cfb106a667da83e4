// Linear layers whose weight [out, in] is cut over the tensor group: by rows (column-parallel, the
// output is cut) or by columns (row-parallel, the input is cut). Biases are the caller's, because
// they are fused with what follows; communication is the caller's too (mappings.h).
#pragma once

#include <vector>

#include "reference_model/parallel/parameters.h"
#include "reference_model/parallel/rank_context.h"

namespace tpsim {

// The product with its operands rounded by the plan's recipe, where it is one of a linear layer's
// or of experts': forward has the transposed weight behind, a weight gradient the transposed
// gradient before. `scales`: Parameter::scales of the weight.
Matmul with_recipe(const RankContext& context, Matmul product, const Tensor& scales);

// y[T, out] = x[T, in] weight'.
Tensor linear_forward(const RankContext& context, const Tensor& x, const Parameter& weight,
                      const Label& label);

// dx[T, in] = dy weight.
Tensor linear_input_gradient(const RankContext& context, const Tensor& dy, const Parameter& weight,
                             const Label& label);

// Adjacent columns of a tensor's rows.
Matrix columns_of(const Tensor& x, std::int64_t first, std::int64_t count);

// The products by themselves: y = x weight'; dx = beta dx + dy weight; weight.gradient (+)= dy' x.
void linear_forward(const RankContext& context, const Matrix& x, const Parameter& weight,
                    const Matrix& y, const Label& label);
void linear_input_gradient(const RankContext& context, const Matrix& dy, const Parameter& weight,
                           const Matrix& dx, float beta, const Label& label);
void linear_weight_gradient(const RankContext& context, const Matrix& dy, const Matrix& x,
                            Parameter& weight, const Label& label);

// Both, dx first: dy is rounded once for the two.
Tensor linear_backward(const RankContext& context, const Tensor& dy, const Tensor& x,
                       Parameter& weight, const Label& label);

// Several matrices that read one input, with adjacent columns of y as outputs: those that lie one
// behind the other in memory multiply as one.
void side_by_side_forward(const RankContext& context, const Tensor& x,
                          const std::vector<Parameter*>& weights, const Tensor& y,
                          const Label& label);
// dx[T, in] = dy weights, and weight gradients (+)= dy' x: matrix by matrix, or first the one, then
// the other of the same dy with no product of a linear layer between them.
Tensor side_by_side_input_gradient(const RankContext& context, const Tensor& dy, const Shape& x,
                                   const std::vector<Parameter*>& weights, const Label& label);
void side_by_side_weight_gradient(const RankContext& context, const Tensor& dy, const Tensor& x,
                                  const std::vector<Parameter*>& weights, const Label& label);
Tensor side_by_side_backward(const RankContext& context, const Tensor& dy, const Tensor& x,
                             const std::vector<Parameter*>& weights, const Label& label);
// Adds dy's column sums to a bias gradient; nothing for an absent bias.
void bias_gradient(const RankContext& context, const Tensor& dy, Parameter* bias,
                   const char* label);

}  // namespace tpsim

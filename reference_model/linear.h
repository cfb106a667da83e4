// Linear layers whose weight [out, in] is cut over the tensor group: by rows (column-parallel, the
// output is cut) or by columns (row-parallel, the input is cut). Biases are the caller's, because
// they are fused with what follows; communication is the caller's too (mappings.h).
#pragma once

#include "reference_model/parameters.h"
#include "reference_model/rank_context.h"

namespace tpsim {

// y[T, out] = x[T, in] weight'.
Tensor linear_forward(const RankContext& context, const Tensor& x, const Tensor& weight,
                      const char* label);

// dx[T, in] = dy weight.
Tensor linear_input_gradient(const RankContext& context, const Tensor& dy, const Tensor& weight,
                             const char* label);
// weight_gradient (+)= dy' x.
void linear_weight_gradient(const RankContext& context, const Tensor& dy, const Tensor& x,
                            Parameter& weight, const char* label);
// Adds dy's column sums to a bias gradient; nothing for an absent bias.
void bias_gradient(const RankContext& context, const Tensor& dy, Parameter* bias,
                   const char* label);

}  // namespace tpsim

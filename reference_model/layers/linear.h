// Linear layers: Megatron's ColumnParallelLinear and RowParallelLinear.
//
// Both are functions on a weight [out, in], whose Sharding decides which of the two it is:
//   ColumnParallelLinear  Sharding::kRows: a rank has out / tp rows. enter_tensor_parallel(), then
//                         linear_forward(). The output stays sharded (gather_output=False).
//   RowParallelLinear     Sharding::kColumns: a rank has in / tp columns. linear_forward() on the
//                         sharded input, then leave_tensor_parallel() on the partial sum.
// The caller runs the collectives (mappings.h) and adds the bias, fused with the next op. T is the
// number of tokens; in and out are the local extents. Functions with `adapters` also run the
// layer's adapter, if it has one. Frozen weights have no wgrad; x may then be undefined.
#pragma once

#include <vector>

#include "reference_model/layers/adapters.h"
#include "reference_model/parallel/parameters.h"
#include "reference_model/parallel/rank_context.h"

namespace tpsim {

// Returns the GEMM with operands quantized by the plan's recipe. Returns it unchanged if its label
// is not one of a linear layer or of experts. The transposed operand identifies the GEMM: the
// second in forward (the weight), the first in wgrad (the gradient). `scales`: Parameter::scales of
// the weight.
Matmul with_recipe(const RankContext& context, Matmul product, const Tensor& scales);

// Forward: y[T, out] = x[T, in] weight'. Allocates y.
Tensor linear_forward(const RankContext& context, const Tensor& x, const Parameter& weight,
                      const Label& label);
Tensor linear_forward(const RankContext& context, const Tensor& x, const Parameter& weight,
                      AdapterSaved& adapters, const Label& label);

// dgrad: dx[T, in] = dy[T, out] weight. Allocates dx.
Tensor linear_input_gradient(const RankContext& context, const Tensor& dy, const Parameter& weight,
                             const Label& label);

// Returns a view of columns first .. first + count of x.
Matrix columns_of(const Tensor& x, std::int64_t first, std::int64_t count);

// Variants that write their result to existing memory. Forward: y = x weight'. dgrad: dx = beta dx
// + dy weight. wgrad: weight.gradient = dy' x in the first micro-batch, then +=
// (accumulation_beta()).
void linear_forward(const RankContext& context, const Matrix& x, const Parameter& weight,
                    const Matrix& y, const Label& label);
void linear_input_gradient(const RankContext& context, const Matrix& dy, const Parameter& weight,
                           const Matrix& dx, float beta, const Label& label);
void linear_weight_gradient(const RankContext& context, const Matrix& dy, const Matrix& x,
                            Parameter& weight, const Label& label);

// Runs dgrad, then wgrad, and returns dx. dy is quantized once for both GEMMs. With a split
// backward all wgrad GEMMs run later (weight_gradients.h), and dy is quantized for each GEMM.
Tensor linear_backward(const RankContext& context, const Tensor& dy, const Tensor& x,
                       Parameter& weight, AdapterSaved& adapters, const Label& label);

// Forward of several weights with the same input, such as q, k and v. Their outputs are adjacent
// columns of y. Weights that are adjacent in memory run as one GEMM.
void side_by_side_forward(const RankContext& context, const Tensor& x,
                          const std::vector<Parameter*>& weights, AdapterSaved& adapters,
                          const Tensor& y, const Label& label);
// dgrad and wgrad of the same weights. side_by_side_backward() alternates them weight by weight.
// Between side_by_side_input_gradient() and side_by_side_weight_gradient() of one dy no other
// linear layer may run, since the device may keep the quantized dy.
Tensor side_by_side_input_gradient(const RankContext& context, const Tensor& dy,
                                   const std::vector<Parameter*>& weights, AdapterSaved& adapters,
                                   const Label& label);
void side_by_side_weight_gradient(const RankContext& context, const Tensor& dy, const Tensor& x,
                                  const std::vector<Parameter*>& weights, AdapterSaved& adapters,
                                  const Label& label);
Tensor side_by_side_backward(const RankContext& context, const Tensor& dy, const Tensor& x,
                             const std::vector<Parameter*>& weights, AdapterSaved& adapters,
                             const Label& label);
// Adds the column sums of dy to the bias gradient. Does nothing if `bias` is null.
void bias_gradient(const RankContext& context, const Tensor& dy, Parameter* bias,
                   const char* label);

}  // namespace tpsim

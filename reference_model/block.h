// One transformer block, pre-norm:
//
//   n1 = norm(x)   a = attention(n1)   y = x + a + bias
//   n2 = norm(y)   m = mlp(n2)         z = y + m + bias
//
// With residual_from_after_norm the residual branches start at n1 and n2 instead of x and y (a
// switch of BLOOM's). Recompute: full keeps x alone and runs forward again in backward; selective
// drops the attention probabilities.
#pragma once

#include "reference_model/attention.h"
#include "reference_model/mlp.h"
#include "reference_model/norm.h"

namespace tpsim {

struct BlockSaved {
  Tensor x;
  NormSaved norm1, norm2;
  AttentionSaved attention;
  MlpSaved mlp;
};

class Block {
 public:
  // Adds the block's unit to the store. `layer` counts from 0 over the whole model.
  static ParameterUnit& add_to(const RankContext& context, ParameterStore& store,
                               std::int64_t layer);
  Block(const RankContext& context, ParameterStore& store, ParameterUnit& unit,
        std::int64_t layer);

  // x and the result: residual_shape(context).
  Tensor forward(const Tensor& x, BlockSaved& saved);
  Tensor backward(const Tensor& dz, BlockSaved saved);

 private:
  Tensor run_forward(const Tensor& x, BlockSaved& saved) const;
  // residual + (partial sum over the tensor group) + bias.
  Tensor add_residual(Tensor partial, const Tensor& residual, Parameter* bias,
                      const char* label) const;

  const RankContext& context_;
  ParameterStore& store_;
  ParameterUnit& unit_;
  Norm norm1_, norm2_;
  Attention attention_;
  Mlp mlp_;
};

}  // namespace tpsim

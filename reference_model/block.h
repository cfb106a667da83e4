// One transformer block, pre-norm:
//
//   n1 = norm(x)   a = attention(n1)   y = x + a + bias
//   n2 = norm(y)   m = mlp(n2)         z = y + m + bias
//
// With residual_from_after_norm the residual branches start at n1 and n2 instead of x and y (a
// switch of BLOOM's). A recomputed block keeps x alone and runs forward again in backward;
// selective recompute drops the attention probabilities.
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
  Tensor attention_mask, mlp_mask;  // dropout of the two branches, [elements] uint8
  std::int64_t draw = 0;            // which forward of this block: what dropout draws from
};

class Block {
 public:
  // Adds the block's unit to the store. `layer` counts from 0 over the whole model.
  static ParameterUnit& add_to(const RankContext& context, ParameterStore& store,
                               std::int64_t layer);
  struct Place {
    std::int64_t layer = 0;  // counts from 0 over the whole model
    bool recomputes = false;
  };
  Block(const RankContext& context, ParameterStore& store, ParameterUnit& unit, const Place& place);

  // x and the result: residual_shape(context).
  Tensor forward(const Tensor& x, BlockSaved& saved);
  Tensor backward(const Tensor& dz, BlockSaved saved);

 private:
  Tensor run_forward(const Tensor& x, BlockSaved& saved) const;
  // A branch of the block on its way back to the residual.
  struct Branch {
    Parameter* bias;
    Tensor& mask;
    std::uint64_t seed;
    const char* label;
  };
  // residual + dropout((partial sum over the tensor group) + bias).
  Tensor add_residual(Tensor partial, const Tensor& residual, const Branch& branch) const;
  // Through the dropout of a branch; dout itself without one.
  Tensor drop_backward(const Tensor& dout, const Tensor& mask, const char* label) const;
  std::uint64_t seed_of(const BlockSaved& saved, int place, bool by_rank) const;

  const RankContext& context_;
  ParameterStore& store_;
  ParameterUnit& unit_;
  Norm norm1_, norm2_;
  Attention attention_;
  Mlp mlp_;
  Place place_;
  std::int64_t forwards_ = 0;
};

}  // namespace tpsim

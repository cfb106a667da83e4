// One transformer block, pre-norm:
//
//   n1 = norm(x)   a = attention(n1)   y = x + a + bias
//   n2 = norm(y)   m = mlp(n2)         z = y + m + bias     (or m = experts(n2))
//
// NormPlace says where the norms stand: behind the branches in place of before them, in both
// places, or before two branches that both start from x. A block may lack either branch, and a
// recurrence may stand for attention.
//
// With residual_from_after_norm the residual branches start at n1 and n2 instead of x and y (a
// switch of BLOOM's). A recomputed block keeps x alone and runs forward again in backward;
// selective recompute drops the attention probabilities.
#pragma once

#include <optional>

#include "reference_model/layers/attention.h"
#include "reference_model/layers/experts.h"
#include "reference_model/layers/mlp.h"
#include "reference_model/layers/norm.h"
#include "reference_model/layers/recurrence.h"

namespace tpsim {

struct BlockSaved {
  Tensor x;
  NormSaved norm1, norm2;    // before the branches
  NormSaved after1, after2;  // behind them
  AttentionSaved attention;
  RecurrenceSaved recurrence;
  MlpSaved mlp;  // dense, or the shared expert's
  ExpertsSaved experts;
  Tensor attention_mask, mlp_mask;  // dropout of the two branches, [elements] uint8
  std::int64_t draw = 0;            // which forward of this block: what dropout draws from
};

// The parameters of a block; experts are a unit of their own, null where there are none.
struct BlockUnits {
  ParameterUnit* block = nullptr;
  ParameterUnit* experts = nullptr;
};

class Block {
 public:
  // Adds the block's units to the store. `layer` counts from 0 over the whole model.
  static BlockUnits add_to(const RankContext& context, ParameterStore& store, std::int64_t layer);
  struct Place {
    std::int64_t layer = 0;  // counts from 0 over the whole model
    bool recomputes = false;
  };
  Block(const RankContext& context, ParameterStore& store, const BlockUnits& units,
        const Place& place);

  // x and the result: residual_shape(context).
  Tensor forward(const Tensor& x, BlockSaved& saved);
  Tensor backward(const Tensor& dz, BlockSaved saved);

 private:
  Tensor run_forward(const Tensor& x, BlockSaved& saved) const;
  Tensor run_parallel(const Tensor& x, BlockSaved& saved) const;
  Tensor parallel_backward(const Tensor& dz, BlockSaved& saved) const;
  Tensor run_backward(const Tensor& dz, BlockSaved& saved) const;
  // The norms around a branch, on the way back.
  struct Norms {
    const Norm* before;
    NormSaved before_saved;
    const Norm* after;
    NormSaved after_saved;
  };
  // Both whole, not partial sums over the tensor group.
  Tensor mixer_forward(const Tensor& x, BlockSaved& saved) const;
  Tensor mlp_forward(const Tensor& x, BlockSaved& saved) const;
  Tensor mixer_backward(Tensor dy, BlockSaved& saved) const;
  Tensor mlp_backward(Tensor dy, BlockSaved& saved) const;
  // A branch of the block on its way back to the residual.
  struct Branch {
    Parameter* bias;
    Tensor& mask;
    std::uint64_t seed;
    const char* label;
    const Norm* after = nullptr;  // the norm behind it, and what its backward needs
    NormSaved* after_saved = nullptr;
  };
  // residual + dropout(sum + bias).
  Tensor add_residual(Tensor sum, const Tensor& residual, const Branch& branch) const;
  // Through the dropout of a branch; dout itself without one.
  Tensor drop_backward(const Tensor& dout, const Tensor& mask, const char* label) const;
  bool mixes() const { return attention_ || recurrence_; }
  bool has_next_branch() const { return mlp_ || experts_; }
  Parameter* mixer_bias() const { return attention_ ? attention_->output_bias() : nullptr; }
  Parameter* mlp_bias() const { return experts_ ? nullptr : mlp_->output_bias(); }
  std::uint64_t seed_of(const BlockSaved& saved, int place, bool by_rank) const;

  const RankContext& context_;
  ParameterStore& store_;
  BlockUnits units_;
  std::optional<Norm> norm1_, norm2_;    // before the branches
  std::optional<Norm> after1_, after2_;  // behind them
  std::optional<ParallelAttention> attention_;
  std::optional<Recurrence> recurrence_;
  std::optional<ParallelMLP> mlp_;  // dense, or beside the experts the shared one
  std::optional<Experts> experts_;
  Place place_;
  std::int64_t forwards_ = 0;
};

}  // namespace tpsim

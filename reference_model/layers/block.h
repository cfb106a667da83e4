// One transformer block: Megatron's ParallelTransformerLayer. Pre-norm:
//
//   n1 = norm(x)   a = attention(n1)   y = x + a + bias
//   n2 = norm(y)   m = mlp(n2)         z = y + m + bias     (or m = experts(n2))
//
// NormPlace selects other positions of the norms: after the branches, around them, or before two
// parallel branches of x. A block may have only one branch. A recurrence or planned ops may replace
// attention. Planned ops may also run in addition to another mixer, with input x.
//
// With residual_from_after_norm (Megatron's apply_residual_connection_post_layernorm) the residuals
// start at n1 and n2. A recomputed block (Megatron's CheckpointFunction) saves x only and repeats
// forward in backward. Selective recompute drops the attention probabilities.
//
// Collectives over the tensor group: two in forward (mixer_forward, mlp_forward) and two in
// backward (ParallelMLP::backward, ParallelAttention::backward). See docs/reference-model.md.
#pragma once

#include <optional>
#include <utility>

#include "reference_model/layers/attention.h"
#include "reference_model/layers/experts.h"
#include "reference_model/layers/mlp.h"
#include "reference_model/layers/norm.h"
#include "reference_model/layers/planned_ops.h"
#include "reference_model/layers/recurrence.h"

namespace tpsim {

struct BlockSaved {
  Tensor x;
  NormSaved norm1, norm2;    // before the branches
  NormSaved after1, after2;  // after the branches
  AttentionSaved attention;
  RecurrenceSaved recurrence;
  PlannedSaved planned;
  MlpSaved mlp;  // dense, or the shared expert's
  ExpertsSaved experts;
  Tensor attention_mask, mlp_mask;  // dropout masks of the two branches, [elements] uint8
  std::int64_t draw = 0;            // number of this forward pass; part of the dropout seed
};

// The parameter units of a block. `experts` is null if the block has no experts.
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

  // x and the result have residual_shape(context). backward() returns the gradient of x. With full
  // recompute, begin_backward() runs forward again. A block without backward saves nothing, and
  // backward() returns the gradient that it gets.
  Tensor forward(const Tensor& x, BlockSaved& saved);
  void begin_backward(BlockSaved& saved);
  Tensor finish_backward(const Tensor& dz, BlockSaved saved);
  Tensor backward(const Tensor& dz, BlockSaved saved) {
    begin_backward(saved);
    return finish_backward(dz, std::move(saved));
  }

 private:
  Tensor run_forward(const Tensor& x, BlockSaved& saved) const;
  Tensor run_parallel(const Tensor& x, BlockSaved& saved) const;
  Tensor parallel_backward(const Tensor& dz, BlockSaved& saved) const;
  Tensor run_backward(const Tensor& dz, BlockSaved& saved) const;
  // The norms around a branch, for backward.
  struct Norms {
    const Norm* before;
    NormSaved before_saved;
    const Norm* after;
    NormSaved after_saved;
  };
  // Results of the two branches, summed over the tensor group.
  Tensor mixer_forward(const Tensor& x, BlockSaved& saved) const;
  Tensor mlp_forward(const Tensor& x, BlockSaved& saved) const;
  Tensor mixer_backward(Tensor dy, BlockSaved& saved) const;
  Tensor mlp_backward(Tensor dy, BlockSaved& saved) const;
  // Arguments of add_residual().
  struct Branch {
    Parameter* bias;
    Tensor& mask;
    std::uint64_t seed;
    const char* label;
    const Norm* after = nullptr;  // the norm after the branch, and its saved tensors
    NormSaved* after_saved = nullptr;
  };
  // Returns residual + dropout(sum + bias): Megatron's bias_dropout_add.
  Tensor add_residual(Tensor sum, const Tensor& residual, const Branch& branch) const;
  // Backward of a branch's dropout. Returns dout unchanged if dropout is off.
  Tensor drop_backward(const Tensor& dout, const Tensor& mask, const char* label) const;
  bool recomputes() const { return place_.recomputes; }
  bool has_backward() const { return context_.model.has_backward; }
  bool plans_mixer() const { return context_.model.mixer == MixerKind::kPlanned; }
  bool mixes() const { return attention_ || recurrence_ || plans_mixer(); }
  bool has_next_branch() const { return mlp_ || experts_; }
  Parameter* mixer_bias() const { return attention_ ? attention_->output_bias() : nullptr; }
  Parameter* mlp_bias() const { return experts_ ? nullptr : mlp_->output_bias(); }
  std::uint64_t seed_of(const BlockSaved& saved, int place, bool by_rank) const;

  const RankContext& context_;
  ParameterStore& store_;
  BlockUnits units_;
  std::optional<Norm> norm1_, norm2_;    // before the branches
  std::optional<Norm> after1_, after2_;  // after the branches
  std::optional<ParallelAttention> attention_;
  std::optional<Recurrence> recurrence_;
  std::optional<PlannedOps> planned_;  // the mixer, or extra ops on x
  std::optional<ParallelMLP> mlp_;     // dense, or the shared expert
  std::optional<Experts> experts_;
  Place place_;
  std::int64_t forwards_ = 0;
};

}  // namespace tpsim

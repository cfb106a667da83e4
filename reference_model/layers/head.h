// The last layer: final norm, logits (Megatron's parallel_lm_logits) and
// vocab_parallel_cross_entropy.
//
// The logits are column-parallel: a rank has the logits of vocab / tp tokens. The loss takes two
// all-reduces: the maximum logit of each token, then the sum of exponentials together with the
// label's logit. Logits are never gathered.
#pragma once

#include "reference_model/layers/norm.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct HeadSaved {
  NormSaved norm;
  Tensor x;          // after the norm, [seq_share, batch, hidden]
  Tensor logits;     // [seq, batch, vocab / tp], fp32 if LogitsDtype::kFloat32
  Tensor capped;     // with logit_cap: a copy of the capped logits
  Tensor max, sums;  // [T], [2, T] fp32
  Tensor labels;     // [seq, batch] int32
};

class Head {
 public:
  // Adds the ParameterUnit of the final norm to `store`. With tied embeddings, the head and the
  // embedding share `word_embeddings`.
  Head(const RankContext& context, ParameterStore& store, ParameterUnit& word_embeddings);

  // Returns the loss of each token, [seq * batch] fp32, equal on all tensor-parallel ranks.
  Tensor forward(const Tensor& x, const Tensor& labels, HeadSaved& saved);
  // Returns the gradient of x, where the loss is `scale` times the sum of the token losses.
  // Overwrites the logits.
  Tensor backward(float scale, HeadSaved saved);

 private:
  void take_sums(HeadSaved& saved) const;
  void online_softmax_stats(HeadSaved& saved) const;
  void shape_logits(HeadSaved& saved) const;
  void shape_logits_backward(HeadSaved& saved) const;
  Tensor converted(const Tensor& logits, DType dtype) const;

  const RankContext& context_;
  ParameterStore& store_;
  ParameterUnit& table_;
  ParameterUnit& norm_unit_;
  Norm norm_;
};

}  // namespace tpsim

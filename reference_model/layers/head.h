// The last layer: final norm, logits against the word embeddings (column-parallel over the
// vocabulary), and the vocabulary-parallel cross entropy: maxima, then one all-reduce of the sums
// of exponentials and the labels' logits. No rank ever holds all logits.
#pragma once

#include "reference_model/layers/norm.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct HeadSaved {
  NormSaved norm;
  Tensor x;          // after the norm, [seq_share, batch, hidden]
  Tensor logits;     // [seq, batch, vocab / tp], fp32 with options.wide_logits
  Tensor capped;     // with a logit_cap: the same, when logits have become gradients
  Tensor max, sums;  // [T], [2, T] fp32
  Tensor labels;     // [seq, batch] int32
};

class Head {
 public:
  // Adds the final norm's unit. `word_embeddings` may be the embedding's.
  Head(const RankContext& context, ParameterStore& store, ParameterUnit& word_embeddings);

  // Loss of every token, [seq * batch] fp32; the same on every tensor-parallel rank.
  Tensor forward(const Tensor& x, const Tensor& labels, HeadSaved& saved);
  // Gradient of x for a loss that is `scale` times the sum over the tokens.
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

// Megatron's VocabParallelEmbedding. Also has learned positions, an embedding scale, BLOOM's
// LayerNorm after the embedding, and planned parts outside the blocks (outer_part.h), if the model
// has them.
//
// A rank holds vocab / tp rows of the padded table. Forward: masked lookup, then all-reduce or
// reduce-scatter. Backward: each rank adds the gradients of the tokens in its own rows.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "reference_model/layers/norm.h"
#include "reference_model/layers/outer_part.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct EmbeddingSaved {
  Tensor tokens;
  NormSaved norm;
  Tensor mask;  // dropout mask, [elements] uint8
  std::vector<OuterPartSaved> parts;
};

// Adds the unit of a word embedding table, [padded vocab / tp, hidden]. It is the table of the
// embedding, of an untied head, or of a tied head on another stage than the embedding
// (`repeats_first_stage`).
ParameterUnit& add_word_embeddings(const RankContext& context, ParameterStore& store,
                                   const std::string& name, bool repeats_first_stage);
std::string embedding_table_name(const ModelSpec& model);
std::string head_table_name(const ModelSpec& model);  // if tied: that of the embedding

class VocabParallelEmbedding {
 public:
  // Adds the unit of positions and norm. The head may share `word_embeddings`.
  VocabParallelEmbedding(const RankContext& context, ParameterStore& store,
                         ParameterUnit& word_embeddings);
  // tokens [seq, batch] int32 -> activations of residual_shape(context).
  Tensor forward(const Tensor& tokens, EmbeddingSaved& saved);
  // Adds to the gradients of table, positions and norm.
  void backward(const Tensor& dy, EmbeddingSaved saved);

 private:
  // Lookup and reduction over the tensor group.
  Tensor lookup(const Tensor& tokens);
  Parameter* positions() const;
  // Consecutive rows of this rank's activations, and the rows of the position table that belong to
  // them.
  struct PositionRows {
    Tensor x, table;
  };
  std::vector<PositionRows> position_rows(const Tensor& x, const Tensor& table) const;
  // Multiplies by the model's embedding_scale, in place.
  void scale(const Tensor& x) const;
  // Adds positions and applies the norm, if the model has them; runs planned parts.
  Tensor finish(Tensor x, EmbeddingSaved& saved);

  const RankContext& context_;
  ParameterStore& store_;
  ParameterUnit& table_;
  ParameterUnit* rest_ = nullptr;  // positions, norm and planned parts
  std::unique_ptr<Norm> norm_;
  std::deque<PlannedPart> parts_;
  std::int64_t forwards_ = 0;
};

}  // namespace tpsim

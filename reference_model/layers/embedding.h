// The first layer: vocabulary-parallel word embedding (masked lookup + all-reduce), learned
// positions where the model has them, BLOOM's LayerNorm after it.
#pragma once

#include <memory>
#include <vector>

#include "reference_model/layers/norm.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct EmbeddingSaved {
  Tensor tokens;
  NormSaved norm;
  Tensor mask;  // of the dropout, [elements] uint8
};

// The word embeddings' unit: of the embedding, of the untied head, or of the tied head on another
// stage.
ParameterUnit& add_word_embeddings(const RankContext& context, ParameterStore& store,
                                   const std::string& name, bool repeats_first_stage);
std::string embedding_table_name(const ModelSpec& model);
std::string head_table_name(const ModelSpec& model);  // the embedding's when tied

class VocabParallelEmbedding {
 public:
  // Adds the unit of everything but the word embeddings, which may be shared with the head.
  VocabParallelEmbedding(const RankContext& context, ParameterStore& store,
                         ParameterUnit& word_embeddings);
  // tokens [seq, batch] int32 -> residual_shape(context).
  Tensor forward(const Tensor& tokens, EmbeddingSaved& saved);
  void backward(const Tensor& dy, EmbeddingSaved saved);

 private:
  Tensor lookup(const Tensor& tokens);
  Parameter* positions() const;
  // This rank's rows of activations with the rows of a position table that belong to them.
  struct PositionRows {
    Tensor x, table;
  };
  std::vector<PositionRows> position_rows(const Tensor& x, const Tensor& table) const;
  // By the model's embedding_scale, in place.
  void scale(const Tensor& x) const;
  // Positions and norm, where the model has them.
  Tensor finish(Tensor x, EmbeddingSaved& saved);

  const RankContext& context_;
  ParameterStore& store_;
  ParameterUnit& table_;
  ParameterUnit* rest_ = nullptr;  // positions and norm
  std::unique_ptr<Norm> norm_;
  std::int64_t forwards_ = 0;
};

}  // namespace tpsim

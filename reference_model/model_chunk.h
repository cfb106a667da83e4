// The part of the model that one pipeline rank runs as a unit: some blocks, with the embedding
// before them on the first chunk and the head after them on the last.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "reference_model/block.h"
#include "reference_model/embedding.h"
#include "reference_model/head.h"

namespace tpsim {

// Token ids of one micro-batch, [seq, batch] int32; undefined where a chunk needs none.
struct MicroBatch {
  Tensor tokens;
  Tensor labels;
};

class ModelChunk {
 public:
  // `chunk` counts over the whole model; `shared_table` holds the word embeddings of an earlier
  // chunk of this rank, for a tied head beside its embedding.
  ModelChunk(const RankContext& context, ParameterStore& store, std::int64_t chunk,
             ParameterUnit* shared_table);

  bool is_first() const { return embedding_ != nullptr; }
  bool is_last() const { return head_ != nullptr; }
  ParameterUnit* word_embeddings() const { return word_embeddings_; }

  // The output activation, or on the last chunk the loss per token. `x` is undefined on the first
  // chunk. What backward needs is kept under the micro-batch's number.
  Tensor forward(std::int64_t micro_batch, const Tensor& x, const MicroBatch& data);
  // Gradient of the chunk's input (undefined on the first chunk). `dy` is undefined on the last
  // chunk, whose loss is `loss_scale` times the sum over its tokens.
  Tensor backward(std::int64_t micro_batch, Tensor dy, float loss_scale);

 private:
  struct Saved {
    EmbeddingSaved embedding;
    std::vector<BlockSaved> blocks;
    HeadSaved head;
  };

  ParameterStore& store_;
  std::deque<RankContext> contexts_;  // by kind of block: the model as if all its blocks were such
  ParameterUnit* word_embeddings_ = nullptr;
  std::unique_ptr<Embedding> embedding_;
  std::vector<Block> blocks_;
  std::unique_ptr<Head> head_;
  std::map<std::int64_t, Saved> saved_;
};

}  // namespace tpsim

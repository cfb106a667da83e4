#include "reference_model/model_chunk.h"

#include <numeric>

namespace tpsim {

ModelChunk::ModelChunk(const RankContext& context, ParameterStore& store, std::int64_t chunk,
                       ParameterUnit* shared_table)
    : store_(store) {
  const ModelSpec& model = context.model;
  const auto& layers = context.plan.stage_layers;
  const auto here = layers.begin() + chunk;
  const std::int64_t first_layer = std::accumulate(layers.begin(), here, std::int64_t{0});
  if (chunk == 0) {
    word_embeddings_ = &add_word_embeddings(context, store, embedding_table_name(model), false);
    embedding_ = std::make_unique<Embedding>(context, store, *word_embeddings_);
  }
  const std::int64_t recomputed = recomputed_blocks(context.plan, *here);
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    contexts_.push_back(context);
    contexts_.back().model = with_block_kind(model, kind);
  }
  for (std::int64_t i = 0; i < *here; ++i) {
    const std::int64_t layer = first_layer + i;
    const RankContext& own = contexts_[static_cast<std::size_t>(block_kind(model, layer))];
    const BlockUnits units = Block::add_to(own, store, layer);
    blocks_.emplace_back(own, store, units, Block::Place{layer, i < recomputed});
  }
  if (chunk + 1 == chunk_count(context.plan)) {
    const bool shares =
        model.tied_embedding && (word_embeddings_ != nullptr || shared_table != nullptr);
    if (shares && word_embeddings_ == nullptr) word_embeddings_ = shared_table;
    if (!shares) {
      word_embeddings_ =
          &add_word_embeddings(context, store, head_table_name(model), model.tied_embedding);
    }
    head_ = std::make_unique<Head>(context, store, *word_embeddings_);
  }
}

Tensor ModelChunk::forward(std::int64_t micro_batch, const Tensor& x, const MicroBatch& data) {
  Saved& saved = saved_[micro_batch];
  saved.blocks.resize(blocks_.size());
  Tensor y = is_first() ? embedding_->forward(data.tokens, saved.embedding) : x;
  for (std::size_t i = 0; i < blocks_.size(); ++i) y = blocks_[i].forward(y, saved.blocks[i]);
  return is_last() ? head_->forward(y, data.labels, saved.head) : y;
}

Tensor ModelChunk::backward(std::int64_t micro_batch, Tensor dy, float loss_scale) {
  const auto found = saved_.find(micro_batch);
  TPSIM_CHECK(found != saved_.end(), "backward without forward");
  Saved saved = std::move(found->second);
  saved_.erase(found);
  Tensor dx = is_last() ? head_->backward(loss_scale, std::move(saved.head)) : std::move(dy);
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    dx = blocks_[i].backward(dx, std::move(saved.blocks[i]));
  }
  if (is_first()) {
    embedding_->backward(dx, std::move(saved.embedding));
    dx = Tensor();
  }
  store_.finish_shares();
  store_.accumulate_pending();
  return dx;
}

}  // namespace tpsim

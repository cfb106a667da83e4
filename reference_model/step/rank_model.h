// The model chunks, weights and optimizer of one rank, and one training step: Megatron's GPTModel
// (TransformerLanguageModel) with its train_step.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "reference_model/layers/block.h"
#include "reference_model/layers/embedding.h"
#include "reference_model/layers/head.h"
#include "reference_model/parallel/schedule.h"
#include "reference_model/parallel/weight_gradients.h"
#include "reference_model/step/optimizer.h"

namespace tpsim {

// Token ids and labels of one micro-batch, [seq, batch] int32. Each is undefined if the chunk does
// not need it.
struct MicroBatch {
  Tensor tokens;
  Tensor labels;
};

// Consecutive blocks on one pipeline stage: Megatron's ParallelTransformer. The first chunk also
// has the embedding, the last chunk the head.
class ModelChunk {
 public:
  // `chunk` counts from 0 over the whole model. `shared_table`: word embeddings of an earlier chunk
  // of this rank, which a tied head shares; may be null.
  ModelChunk(const RankContext& context, ParameterStore& store, std::int64_t chunk,
             ParameterUnit* shared_table);

  bool is_first() const { return embedding_ != nullptr; }
  bool is_last() const { return head_ != nullptr; }
  ParameterUnit* word_embeddings() const { return word_embeddings_; }

  // Returns the output activation; on the last chunk the loss of each token. `x` is undefined on
  // the first chunk. Saves activations for the backward of the same micro-batch.
  Tensor forward(std::int64_t micro_batch, const Tensor& x, const MicroBatch& data);
  // Returns the gradient of the chunk's input; undefined on the first chunk. `dy` is undefined on
  // the last chunk, whose loss is `loss_scale` times the sum over its tokens.
  Tensor backward(std::int64_t micro_batch, Tensor dy, float loss_scale);

 private:
  struct Saved {
    EmbeddingSaved embedding;
    std::vector<BlockSaved> blocks;
    HeadSaved head;
  };

  ParameterStore& store_;
  std::deque<RankContext> contexts_;  // one for each kind of block in the model
  ParameterUnit* word_embeddings_ = nullptr;
  std::unique_ptr<VocabParallelEmbedding> embedding_;
  std::vector<Block> blocks_;
  std::unique_ptr<Head> head_;
  std::map<std::int64_t, Saved> saved_;
};

struct StepResult {
  double loss = 0;       // mean over all tokens of the step, equal on all ranks
  double grad_norm = 0;  // before clipping; 0 if clipping is switched off
};

class RankModel {
 public:
  RankModel(const RankContext& context, OptimizerSettings settings);
  RankModel(const RankModel&) = delete;
  RankModel& operator=(const RankModel&) = delete;

  // Allocates and initializes weights and optimizer state.
  void materialize(std::uint64_t seed);

  // Returns this data-parallel rank's `micro_batch`-th micro-batch: seq + 1 tokens for each sample,
  // sample by sample. Only the first rank of a tensor group calls this and broadcasts the tokens.
  using DataSource = std::function<std::vector<std::int32_t>(std::int64_t micro_batch)>;

  // Forward and backward of all micro-batches in the order of the plan's schedule, like the
  // function that Megatron's get_forward_backward_func() returns.
  void run_pipeline(const DataSource& data);
  void reduce_gradients() { optimizer_.reduce_gradients(); }
  StepResult update(std::int64_t step);

  StepResult train_step(std::int64_t step, const DataSource& data);

  ParameterStore& store() { return store_; }
  Optimizer& optimizer() { return optimizer_; }
  const RankContext& context() const { return context_; }

 private:
  void run_whole(const PipelineTask& forward, const PipelineTask& backward, const DataSource& data);
  // `loaded` returns tokens and labels; it is called after the input has arrived.
  void run_forward(const PipelineTask& task, const std::function<MicroBatch()>& loaded);
  void run_backward(const PipelineTask& task);
  void run_weight_gradients(const PipelineTask& task);
  // Counts a task that computes weight gradients. Returns whether it is the chunk's last in the
  // step.
  bool is_last_backward(const PipelineTask& task);
  MicroBatch load(const PipelineTask& task, const DataSource& data);
  ModelChunk& chunk_of(const PipelineTask& task) const;
  void add_loss(const Tensor& loss);
  float loss_scale() const;
  int neighbour(std::int64_t distance) const;

  RankContext context_;
  ParameterStore store_;
  Optimizer optimizer_;
  std::vector<std::unique_ptr<ModelChunk>> chunks_;
  std::vector<std::int64_t> backwards_left_;  // of each chunk, in this step
  WeightGradients weight_gradients_;          // if the schedule splits the backward
  Tensor loss_sum_;                           // [1] fp32, over this rank's tokens
};

}  // namespace tpsim

#include "reference_model/step/rank_model.h"

#include <array>
#include <numeric>

#include "reference_model/parallel/transfers.h"

namespace tpsim {
namespace {

constexpr Label kReportLoss{ModelPart::kReporting, "loss"};

}  // namespace

ModelChunk::ModelChunk(const RankContext& context, ParameterStore& store, std::int64_t chunk,
                       ParameterUnit* shared_table)
    : store_(store) {
  const ModelSpec model = trained_model(context.model, context.options.finetune);
  const auto& layers = context.plan.stage_layers;
  const auto here = layers.begin() + chunk;
  const std::int64_t first_layer = std::accumulate(layers.begin(), here, std::int64_t{0});
  if (chunk == 0) {
    word_embeddings_ = &add_word_embeddings(context, store, embedding_table_name(model), false);
    embedding_ = std::make_unique<VocabParallelEmbedding>(context, store, *word_embeddings_);
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

RankModel::RankModel(const RankContext& context, OptimizerSettings settings)
    : context_(context), store_(context_), optimizer_(context_, store_, settings) {
  const Plan& plan = context_.plan;
  if (splits_backward(plan.schedule)) {
    TPSIM_CHECK(fuses_accumulation(context_.options),
                "a split backward needs fused gradient accumulation");
    context_.weight_gradients = &weight_gradients_;
  }
  ParameterUnit* table = nullptr;
  for (std::int64_t v = 0; v < plan.virtual_stages; ++v) {
    const std::int64_t chunk = v * plan.degrees.pp + context_.at.pp;
    chunks_.push_back(std::make_unique<ModelChunk>(context_, store_, chunk, table));
    if (table == nullptr) table = chunks_.back()->word_embeddings();
  }
}

void RankModel::materialize(std::uint64_t seed) {
  store_.materialize(seed);
  optimizer_.materialize();
  loss_sum_ =
      context_.device.allocate({1}, DType::kFloat32, MemoryCategory::kWorkspace, kReportLoss.text);
}

StepResult RankModel::train_step(std::int64_t step, const DataSource& data) {
  run_pipeline(data);
  reduce_gradients();
  return update(step);
}

void RankModel::run_pipeline(const DataSource& data) {
  store_.clear_gradients();
  context_.device.run(Fill{loss_sum_, 0.0F, kReportLoss});
  const PipelineShape shape = pipeline_shape(context_.plan);
  backwards_left_.assign(chunks_.size(), shape.micro_batches);
  const bool whole = context_.device.records() && alternates(shape);
  for (ScheduleCursor next(shape, context_.at.pp); !next.done(); next.advance()) {
    const PipelineTask task = next.current();
    if (whole) {
      next.advance();
      run_whole(task, next.current(), data);
      continue;
    }
    switch (task.kind) {
      case TaskKind::kForward: run_forward(task, [&] { return load(task, data); }); break;
      case TaskKind::kBackward: run_backward(task); break;
      case TaskKind::kWeightGradient: run_weight_gradients(task); break;
    }
  }
}

// Runs forward and backward of a micro-batch as recorded and replayed work (CUDA graph). The model
// is on one rank, without communication. Every micro-batch runs the same ops, except that the first
// one overwrites gradients.
void RankModel::run_whole(const PipelineTask& forward, const PipelineTask& backward,
                          const DataSource& data) {
  MicroBatch batch = load(forward, data);
  const bool overwrites = forward.micro_batch == 0 && overwrites_gradients(context_.options);
  context_.device.repeat(
      [&] {
        if (overwrites) store_.set_fresh(true);
        run_forward(forward, [&] { return batch; });
        run_backward(backward);
      },
      std::array{batch.tokens, batch.labels}, overwrites ? 1 : 0);
  store_.set_fresh(false);
}

ModelChunk& RankModel::chunk_of(const PipelineTask& task) const {
  return *chunks_[static_cast<std::size_t>(task.chunk)];
}

StepResult RankModel::update(std::int64_t step) {
  StepResult result;
  result.grad_norm = optimizer_.update(step);
  // Only the last stage has losses. They are equal over the tensor group, so only its first rank
  // counts them.
  if (context_.plan.degrees.tp > 1 && context_.at.tp != 0) {
    context_.device.run(Fill{loss_sum_, 0.0F, kReportLoss});
  }
  context_.groups.world.all_reduce(loss_sum_, ReduceOp::kSum, kReportLoss);
  result.loss = static_cast<double>(download_scalar(context_.device, loss_sum_)) *
                static_cast<double>(loss_scale());
  return result;
}

float RankModel::loss_scale() const {
  return 1.0F / static_cast<float>(context_.plan.global_batch * context_.model.seq);
}

int RankModel::neighbour(std::int64_t distance) const {
  const std::int64_t pp = context_.plan.degrees.pp;
  return static_cast<int>((context_.at.pp + distance + pp) % pp);
}

void RankModel::run_forward(const PipelineTask& task, const std::function<MicroBatch()>& loaded) {
  ModelChunk& chunk = chunk_of(task);
  Communicator& pipeline = context_.groups.pipeline_forward;
  Tensor x;
  if (!chunk.is_first()) {
    x = receive_from_stage(context_, pipeline, neighbour(-1), kActivationMessage);
  }
  const MicroBatch batch = loaded();
  const Tensor y = chunk.forward(task.micro_batch, x, batch);
  if (chunk.is_last()) {
    add_loss(y);
  } else {
    send_to_stage(context_, pipeline, y, neighbour(1), kActivationMessage);
  }
}

void RankModel::run_backward(const PipelineTask& task) {
  ModelChunk& chunk = chunk_of(task);
  Communicator& pipeline = context_.groups.pipeline_backward;
  Tensor dy;
  if (!chunk.is_last()) {
    dy = receive_from_stage(context_, pipeline, neighbour(1), kGradientMessage);
  }
  const bool is_split = context_.weight_gradients != nullptr;
  store_.set_last_backward(!is_split && is_last_backward(task));
  const Tensor dx = chunk.backward(task.micro_batch, std::move(dy), loss_scale());
  if (!chunk.is_first()) send_to_stage(context_, pipeline, dx, neighbour(-1), kGradientMessage);
  if (is_split) weight_gradients_.end_backward();
}

void RankModel::run_weight_gradients(const PipelineTask& task) {
  store_.set_last_backward(is_last_backward(task));
  weight_gradients_.run_oldest();
}

bool RankModel::is_last_backward(const PipelineTask& task) {
  return --backwards_left_[static_cast<std::size_t>(task.chunk)] == 0;
}

MicroBatch RankModel::load(const PipelineTask& task, const DataSource& data) {
  const ModelChunk& chunk = chunk_of(task);
  MicroBatch batch;
  if (!chunk.is_first() && !chunk.is_last()) return batch;
  std::vector<std::int32_t> samples;
  if (context_.at.tp == 0) samples = data(task.micro_batch);
  if (chunk.is_first()) batch.tokens = share_tokens(context_, samples, 0, "data.tokens");
  if (chunk.is_last()) batch.labels = share_tokens(context_, samples, 1, "data.labels");
  return batch;
}

void RankModel::add_loss(const Tensor& loss) {
  context_.device.run(ColumnSum{loss.reshaped({loss.elements(), 1}), loss_sum_, kReportLoss});
}

}  // namespace tpsim

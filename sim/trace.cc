#include "sim/trace.h"

#include "core/rank_layout.h"
#include "reference_model/block.h"
#include "reference_model/embedding.h"
#include "reference_model/head.h"
#include "reference_model/optimizer.h"
#include "reference_model/rank_model.h"
#include "reference_model/transfers.h"

namespace tpsim {
namespace {

int as_int(std::int64_t n) { return static_cast<int>(n); }

// Ranks in the embedding group of a stage: first and last share the tied table.
int embedding_group_size(const Plan& plan, std::int64_t stage) {
  const std::int64_t pp = plan.degrees.pp;
  return pp > 1 && (stage == 0 || stage == pp - 1) ? 2 : 1;
}

// Runs the phases of a piece around the two calls that differ from kind to kind.
class PieceTracer {
 public:
  PieceTracer(const ModelSpec& model, const Plan& plan, const TrainingOptions& options)
      : rank_(model, plan, options, {}),
        context_(rank_.context()),
        table_store_(context_),
        store_(context_),
        optimizer_(context_, store_, {}) {}

  PieceTrace trace(PieceKind kind) {
    if (kind == PieceKind::kWordTable) {
      add_word_table(context_, store_, embedding_table_name(context_.model), false);
      start();
      trace_.forward = trace_.forward_end = trace_.backward = mark();
      return finish();
    }
    if (kind == PieceKind::kBlock) return trace_block();
    ParameterUnit& table =
        add_word_table(context_, table_store_, embedding_table_name(context_.model), false);
    table_store_.materialize(0);
    return kind == PieceKind::kEmbedding ? trace_embedding(table) : trace_head(table);
  }

 private:
  std::size_t mark() { return rank_.recorder().mark(); }
  Tensor activation() {
    return allocate_activation(context_, residual_shape(context_), "pipeline.activation");
  }
  Tensor tokens(std::int64_t shift) { return share_tokens(context_, {}, shift, "data.tokens"); }

  void start() {
    trace_.allocate = mark();
    store_.materialize(0);
    optimizer_.materialize();
    trace_.clear = mark();
    store_.clear_gradients();
  }

  PieceTrace finish() {
    trace_.backward_end = mark();
    table_store_.accumulate_pending();
    store_.accumulate_pending();
    trace_.reduce = mark();
    optimizer_.reduce_gradients();
    trace_.update = mark();
    optimizer_.update(1);
    trace_.end = mark();
    trace_.program = rank_.recorder().program();
    return trace_;
  }

  PieceTrace trace_block() {
    ParameterUnit& unit = Block::add_to(context_, store_, 0);
    Block block(context_, store_, unit, 0);
    start();
    BlockSaved saved;
    Tensor x = activation();
    trace_.forward = mark();
    Tensor y = block.forward(x, saved);
    x = Tensor();
    trace_.forward_end = mark();
    y = Tensor();
    Tensor dy = activation();
    trace_.backward = mark();
    const Tensor dx = block.backward(dy, std::move(saved));
    dy = Tensor();
    return finish();
  }

  PieceTrace trace_embedding(ParameterUnit& table) {
    Embedding embedding(context_, store_, table);
    start();
    EmbeddingSaved saved;
    trace_.forward = mark();
    Tensor y = embedding.forward(tokens(0), saved);
    trace_.forward_end = mark();
    y = Tensor();
    Tensor dy = activation();
    trace_.backward = mark();
    embedding.backward(dy, std::move(saved));
    dy = Tensor();
    return finish();
  }

  PieceTrace trace_head(ParameterUnit& table) {
    Head head(context_, store_, table);
    start();
    HeadSaved saved;
    Tensor x = activation();
    trace_.forward = mark();
    Tensor loss = head.forward(x, tokens(1), saved);
    x = Tensor();
    loss = Tensor();
    trace_.forward_end = mark();
    trace_.backward = mark();
    const Tensor dx = head.backward(1.0F, std::move(saved));
    return finish();
  }

  MetaRank rank_;
  const RankContext& context_;
  ParameterStore table_store_;  // the word table, where another piece owns it
  ParameterStore store_;
  Optimizer optimizer_;
  PieceTrace trace_;
};

}  // namespace

MetaRank::MetaRank(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                   const RankCoordinates& at)
    : tensor_(device_, GroupKind::kTensor, as_int(at.tp), as_int(plan.degrees.tp)),
      data_(device_, GroupKind::kData, as_int(at.dp), as_int(plan.degrees.dp)),
      forward_(device_, GroupKind::kPipeline, as_int(at.pp), as_int(plan.degrees.pp)),
      backward_(device_, GroupKind::kPipeline, as_int(at.pp), as_int(plan.degrees.pp)),
      embedding_(device_, GroupKind::kEmbedding, at.pp == 0 ? 0 : 1,
                 embedding_group_size(plan, at.pp)),
      model_(device_, GroupKind::kModel, as_int(at.pp * plan.degrees.tp + at.tp),
             as_int(plan.degrees.tp * plan.degrees.pp)),
      world_(device_, GroupKind::kWorld, as_int(global_rank(plan, at)), as_int(gpu_count(plan))),
      context_{device_, {tensor_, data_, forward_, backward_, embedding_, model_, world_},
               at,      model,
               plan,    options} {
  device_.set_recorder(&recorder_);
}

PieceTrace trace_piece(PieceKind kind, const ModelSpec& model, const Plan& plan,
                       const TrainingOptions& options) {
  return PieceTracer(model, plan, options).trace(kind);
}

TransferTrace trace_transfer(const ModelSpec& model, const Plan& plan,
                             const TrainingOptions& options) {
  MetaRank rank(model, plan, options, {});
  const RankContext& context = rank.context();
  TransferTrace trace;
  {
    const Tensor x = allocate_activation(context, residual_shape(context), "pipeline.activation");
    send_to_stage(context, context.groups.pipeline_forward, x, 1, "pipeline.activation");
    trace.receive = rank.recorder().mark();
    receive_from_stage(context, context.groups.pipeline_forward, 1, "pipeline.activation");
  }
  trace.program = rank.recorder().program();
  return trace;
}

Program trace_rank(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                   std::int64_t rank) {
  MetaRank meta(model, plan, options, coordinates(plan, rank));
  {
    RankModel rank_model(meta.context(), {});
    rank_model.materialize(0);
    rank_model.train_step(1, [](std::int64_t) { return std::vector<std::int32_t>(); });
  }
  return meta.recorder().program();
}

}  // namespace tpsim

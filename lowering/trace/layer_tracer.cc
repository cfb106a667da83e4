// Runs a layer of the reference model on the meta device, and records its phases.
#include <optional>
#include <utility>

#include "core/plan/rank_layout.h"
#include "lowering/trace/meta_rank.h"
#include "lowering/trace/trace.h"
#include "reference_model/layers/block.h"
#include "reference_model/layers/embedding.h"
#include "reference_model/layers/head.h"
#include "reference_model/parallel/owners.h"
#include "reference_model/parallel/schedule.h"
#include "reference_model/parallel/transfers.h"
#include "reference_model/parallel/weight_gradients.h"
#include "reference_model/step/optimizer.h"

namespace tpsim {
namespace {

// Returns the rank to trace. Context-parallel ranks have equal work. The last rank has the two
// middle chunks of the sequence and needs the most memory for gradients of keys and values.
RankCoordinates traced_rank(const Plan& plan) { return {.cp = plan.degrees.cp - 1}; }

// Adds the table of word embeddings that a layer is or uses.
ParameterUnit& add_table(LayerKind kind, const RankContext& context, ParameterStore& store) {
  const bool is_head = kind == LayerKind::kHead || kind == LayerKind::kHeadTable;
  const ModelSpec& model = context.model;
  return add_word_embeddings(context, store,
                             is_head ? head_table_name(model) : embedding_table_name(model), false);
}

// Runs forward and backward of one layer and records both, for any number of micro-batch sizes.
class LayerTracer {
 public:
  LayerTracer(LayerKind kind, const ModelSpec& model, const Plan& plan,
              const TrainingOptions& options)
      : kind_(kind),
        rank_(model, plan, options, traced_rank(plan)),
        context_(rank_.context()),
        table_store_(context_),
        store_(context_) {
    if (splits_backward(plan.schedule)) context_.weight_gradients = &weight_gradients_;
    switch (kind) {
      case LayerKind::kBlock: units_ = Block::add_to(context_, store_, 0); break;
      case LayerKind::kEmbedding: embedding_.emplace(context_, store_, table()); break;
      case LayerKind::kHead: head_.emplace(context_, store_, table()); break;
      case LayerKind::kWordEmbeddings:
      case LayerKind::kHeadTable: break;
    }
    store_.materialize({});
    start_ = rank_.recorder().position();
  }

  LayerTrace trace(std::int64_t micro_batch) {
    // The number of micro-batches stays: it determines which gradients are accumulated.
    Plan& plan = context_.plan;
    plan.global_batch = plan.global_batch / plan.micro_batch * micro_batch;
    plan.micro_batch = micro_batch;
    rank_.recorder().rewind(start_);
    switch (kind_) {
      case LayerKind::kBlock: trace_block(); break;
      case LayerKind::kEmbedding: trace_embedding(); break;
      case LayerKind::kHead: trace_head(); break;
      case LayerKind::kWordEmbeddings:
      case LayerKind::kHeadTable: break;
    }
    trace_.program = rank_.recorder().program();
    return std::exchange(trace_, {});
  }

 private:
  std::size_t mark() { return rank_.recorder().mark(); }
  void begin(Phase phase) { trace_.span(phase).begin = mark(); }
  void end(Phase phase) { trace_.span(phase).end = mark(); }
  Tensor activation() {
    return allocate_activation(context_, residual_shape(context_), "pipeline.activation");
  }
  Tensor tokens(std::int64_t shift) { return share_tokens(context_, {}, shift, "data.tokens"); }

  // Ends backward and records gradient accumulation. Call while the results of backward are
  // allocated.
  void finish() {
    table_store_.finish_shares();
    store_.finish_shares();
    end(Phase::kBackward);
    begin(Phase::kWeightGradient);
    if (context_.weight_gradients != nullptr) {
      weight_gradients_.end_backward();
      weight_gradients_.run_oldest();
    }
    end(Phase::kWeightGradient);
    begin(Phase::kAccumulate);
    table_store_.accumulate_pending();
    store_.accumulate_pending();
    end(Phase::kAccumulate);
  }

  // Adds the word embeddings to a separate store, since they are a layer of their own.
  ParameterUnit& table() {
    ParameterUnit& unit = add_table(kind_, context_, table_store_);
    table_store_.materialize({});
    return unit;
  }

  void trace_block() {
    Block block(context_, store_, units_, {0, context_.plan.recompute == Recompute::kFull});
    BlockSaved saved;
    Tensor x = activation();
    begin(Phase::kForward);
    Tensor y = block.forward(x, saved);
    x = Tensor();
    end(Phase::kForward);
    y = Tensor();
    Tensor dy = activation();
    begin(Phase::kBackward);
    block.begin_backward(saved);
    trace_.recompute_end = mark();
    const Tensor dx = block.finish_backward(dy, std::move(saved));
    dy = Tensor();
    finish();
  }

  void trace_embedding() {
    EmbeddingSaved saved;
    begin(Phase::kForward);
    // Outlives the trace, because the first block frees its input.
    const Tensor y = embedding_->forward(tokens(0), saved);
    end(Phase::kForward);
    Tensor dy = activation();
    begin(Phase::kBackward);
    embedding_->backward(dy, std::move(saved));
    dy = Tensor();
    finish();
  }

  void trace_head() {
    HeadSaved saved;
    Tensor x = activation();
    begin(Phase::kForward);
    Tensor loss = head_->forward(x, tokens(1), saved);
    x = Tensor();
    loss = Tensor();
    end(Phase::kForward);
    begin(Phase::kBackward);
    const Tensor dx = head_->backward(1.0F, std::move(saved));
    finish();
  }

  LayerKind kind_;
  MetaRank rank_;
  RankContext& context_;
  WeightGradients weight_gradients_;
  ParameterStore table_store_;
  ParameterStore store_;
  BlockUnits units_;
  std::optional<VocabParallelEmbedding> embedding_;
  std::optional<Head> head_;
  TraceRecorder::Position start_;
  LayerTrace trace_;
};

// Adds the parameters of a layer to `store`. The word embeddings that embedding and head refer to
// are added to `table_store`.
void add_units(LayerKind kind, const RankContext& context, ParameterStore& store,
               ParameterStore& table_store) {
  const auto table = [&](ParameterStore& owner) -> ParameterUnit& {
    return add_table(kind, context, owner);
  };
  switch (kind) {
    case LayerKind::kWordEmbeddings:
    case LayerKind::kHeadTable: table(store); break;
    case LayerKind::kEmbedding: VocabParallelEmbedding(context, store, table(table_store)); break;
    case LayerKind::kBlock: Block::add_to(context, store, 0); break;
    case LayerKind::kHead: Head(context, store, table(table_store)); break;
  }
}

// Optimizer::update(), with run(unit, work) around the work of each unit.
template <class Run>
void update(Optimizer& optimizer, ParameterStore& store, Run run) {
  const Optimizer::UpdateStep step = optimizer.begin_update(1);
  for (std::size_t i = 0; i < store.units().size(); ++i) {
    run(store.units()[i], [&] { optimizer.update_unit(i, step); });
  }
  for (ParameterUnit& unit : store.units()) optimizer.gather_weights(unit);
}

void add_tensors(const ParameterUnit& unit, StepEndTrace& trace) {
  if (unit.is_frozen()) return;
  ++trace.units;
  trace.tensors += static_cast<std::int64_t>(unit.parameters().size());
  if (!unit.has_owners()) return;
  for (const Parameter& p : unit.parameters()) {
    trace.owned_tensors.push_back({update_cost(p.updater, p.spec.shape),
                                   static_cast<double>(p.spec.shape.elements()),
                                   unit.holds_experts()});
  }
}

}  // namespace

LayerTrace trace_layers(LayerKind kind, const ModelSpec& model, const Plan& plan,
                        const TrainingOptions& options) {
  return LayerTracer(kind, model, plan, options).trace(plan.micro_batch);
}

std::vector<LayerTrace> trace_sizes(LayerKind kind, const ModelSpec& model, const Plan& plan,
                                    const TrainingOptions& options,
                                    std::span<const std::int64_t> micro_batches) {
  LayerTracer tracer(kind, model, plan, options);
  std::vector<LayerTrace> traces;
  for (const std::int64_t size : micro_batches) traces.push_back(tracer.trace(size));
  return traces;
}

StepEndTrace trace_step_end(LayerKind kind, const ModelSpec& model, const Plan& plan,
                            const TrainingOptions& options) {
  MetaRank rank(model, plan, options, traced_rank(plan));
  ParameterStore store(rank.context());
  ParameterStore table_store(rank.context());
  Optimizer optimizer(rank.context(), store, {});
  add_units(kind, rank.context(), store, table_store);
  store.own_all_tensors();
  StepEndTrace trace;
  const auto mark = [&] { return rank.recorder().mark(); };
  // Runs the work of a unit, and notes its events if the unit has owners.
  const auto run = [&](const ParameterUnit& unit, auto work) {
    const std::size_t begin = mark();
    work();
    if (unit.has_owners()) trace.owned.push_back({begin, mark(), unit.holds_experts()});
  };
  store.materialize(0);
  for (ParameterUnit& unit : store.units()) run(unit, [&] { optimizer.materialize_unit(); });
  const std::size_t clear = mark();
  store.clear_gradients();
  const std::size_t reduce = mark();
  optimizer.reduce_gradients();
  update(optimizer, store, run);
  trace.span(Phase::kAllocate) = {0, clear};
  trace.span(Phase::kClearGradients) = {clear, reduce};
  trace.span(Phase::kUpdate) = {reduce, mark()};
  trace.program = rank.recorder().take();
  for (const ParameterUnit& unit : store.units()) add_tensors(unit, trace);
  return trace;
}

LayerTrace trace_transfer(const ModelSpec& model, const Plan& plan,
                          const TrainingOptions& options) {
  MetaRank rank(model, plan, options, traced_rank(plan));
  const RankContext& context = rank.context();
  LayerTrace trace;
  std::size_t receive = 0;
  {
    const Tensor x = allocate_activation(context, residual_shape(context), kActivationMessage.text);
    send_to_stage(context, context.groups.pipeline_forward, x, 1, kActivationMessage);
    receive = rank.recorder().mark();
    receive_from_stage(context, context.groups.pipeline_forward, 1, kActivationMessage);
  }
  trace.program = rank.recorder().take();
  trace.span(Phase::kSend) = {0, receive};
  trace.span(Phase::kReceive) = {receive, trace.program.events.size()};
  return trace;
}

}  // namespace tpsim

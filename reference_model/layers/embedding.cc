#include "reference_model/layers/embedding.h"

#include "reference_model/layers/weight_names.h"
#include "reference_model/parallel/context_parallel.h"
#include "reference_model/parallel/mappings.h"

namespace tpsim {
namespace {

constexpr Label kLookup{ModelPart::kEmbedding, "embedding.lookup"};
constexpr Label kAddPositions{ModelPart::kEmbedding, "embedding.positions"};
constexpr Label kScale{ModelPart::kEmbedding, "embedding.scale"};
constexpr Label kEmbeddingDropout{ModelPart::kEmbedding, "embedding.dropout"};

}  // namespace

std::string embedding_table_name(const ModelSpec& model) { return names_of(model).words; }

std::string head_table_name(const ModelSpec& model) { return names_of(model).head; }

ParameterUnit& add_word_embeddings(const RankContext& context, ParameterStore& store,
                                   const std::string& name, bool repeats_first_stage) {
  const LocalSizes sizes = local_sizes(context);
  ParameterSpec spec{.name = name,
                     .shape = {sizes.vocab, context.model.hidden},
                     .sharding = Sharding::kRows,
                     .deviation = context.model.initializer_range,
                     .global_rows = context.model.vocab,
                     .is_multiplied = false,  // the head sets this to true
                     .is_trained = trains_table(context.model, context.options.finetune,
                                                name == head_table_name(context.model))};
  return store.add_unit({std::move(spec)}, repeats_first_stage ? UnitRole::kRepeatedWordEmbeddings
                                                               : UnitRole::kWordEmbeddings);
}

VocabParallelEmbedding::VocabParallelEmbedding(const RankContext& context, ParameterStore& store,
                                               ParameterUnit& word_embeddings)
    : context_(context), store_(store), table_(word_embeddings) {
  const ModelSpec& model = context.model;
  const WeightNames names = names_of(model);
  SpecList specs(context, "");
  if (model.attention.position == PositionKind::kLearned) {
    const std::int64_t rows = tpsim::position_rows(model);
    specs.matrix(names.positions, rows, model.hidden).is_multiplied = false;
  }
  if (model.embedding_norm) Norm::specify(names.embedding_norm, specs);
  for (const OuterPart& part : model.ends.parts) PlannedPart::specify(part, specs);
  if (specs.empty()) return;
  rest_ = &store.add_unit(specs.take_outer());
  if (model.embedding_norm) norm_ = std::make_unique<Norm>(*rest_, names.embedding_norm);
  for (const OuterPart& part : model.ends.parts) parts_.emplace_back(context, *rest_, part);
}

Parameter* VocabParallelEmbedding::positions() const {
  return rest_ == nullptr ? nullptr : find_parameter(*rest_, names_of(context_.model).positions);
}

std::vector<VocabParallelEmbedding::PositionRows> VocabParallelEmbedding::position_rows(
    const Tensor& x, const Tensor& table) const {
  const std::int64_t batch = x.shape()[1], hidden = x.shape()[2];
  std::vector<PositionRows> rows;
  for (const SequenceRun& run : share_runs(context_)) {
    rows.push_back({x.slice(run.row * batch * hidden, Shape{run.count, batch, hidden}),
                    table.slice(run.position * hidden, Shape{run.count, hidden})});
  }
  return rows;
}

Tensor VocabParallelEmbedding::forward(const Tensor& tokens, EmbeddingSaved& saved) {
  saved.tokens = tokens;
  store_.begin_forward(table_);
  Tensor x = lookup(tokens);
  store_.end_forward(table_);
  scale(x);
  if (rest_ != nullptr) x = finish(std::move(x), saved);
  const auto rate = static_cast<float>(context_.model.hidden_dropout);
  if (rate == 0) return x;
  constexpr std::int64_t kBeforeTheBlocks = -1;
  saved.mask = allocate_mask(context_, x, kEmbeddingDropout.text);
  context_.device.run(DropoutForward{.x = x,
                                     .bias = {},
                                     .residual = {},
                                     .y = x,
                                     .mask = saved.mask,
                                     .rate = rate,
                                     .seed = dropout_seed(context_, kBeforeTheBlocks, forwards_++,
                                                          0, context_.plan.sequence_parallel),
                                     .label = kEmbeddingDropout});
  return x;
}

void VocabParallelEmbedding::scale(const Tensor& x) const {
  const auto factor = static_cast<float>(context_.model.ends.embedding_scale);
  if (factor != 1) context_.device.run(Scale{x, factor, kScale});
}

Tensor VocabParallelEmbedding::finish(Tensor x, EmbeddingSaved& saved) {
  store_.begin_forward(*rest_);
  if (Parameter* p = positions(); p != nullptr) {
    for (const auto& [part, table] : position_rows(x, p->weight)) {
      context_.device.run(PositionForward{part, table, kAddPositions});
    }
  }
  if (norm_ != nullptr) x = norm_->forward(context_, x, saved.norm, "embedding.norm");
  saved.parts.resize(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].forward(x, saved.parts[i]);
  store_.end_forward(*rest_);
  return x;
}

// Each rank looks up the tokens in its vocabulary range; other rows are zero. The sum over the
// tensor group completes the result.
Tensor VocabParallelEmbedding::lookup(const Tensor& tokens) {
  const LocalSizes sizes = local_sizes(context_);
  Tensor x =
      allocate_activation(context_, {sizes.seq, sizes.batch, context_.model.hidden}, kLookup.text);
  context_.device.run(
      EmbeddingForward{tokens, table_.parameters().front().weight, x, sizes.vocab_begin, kLookup});
  return leave_tensor_parallel(context_, std::move(x),
                               {ModelPart::kTensorParallel, "embedding.reduce"});
}

void VocabParallelEmbedding::backward(const Tensor& dy, EmbeddingSaved saved) {
  store_.finish_shares();  // no compute is left to overlap
  const bool trains_rest =
      rest_ != nullptr && (!rest_->is_frozen() || rest_->trained_part() != nullptr);
  if (table_.is_frozen() && !trains_rest) return;
  Tensor dx = dy;
  if (saved.mask.defined()) {
    dx = allocate_activation(context_, dy.shape(), kEmbeddingDropout.text);
    context_.device.run(DropoutBackward{
        dy, saved.mask, dx, static_cast<float>(context_.model.hidden_dropout), kEmbeddingDropout});
    saved.mask = Tensor();
  }
  if (rest_ != nullptr) {
    store_.begin_backward(*rest_);
    for (std::size_t i = parts_.size(); i-- > 0;) parts_[i].backward(std::move(saved.parts[i]));
    if (norm_ != nullptr)
      dx = norm_->backward(context_, dx, saved.norm, Tensor(), "embedding.norm");
    if (Parameter* p = positions(); p != nullptr && p->is_trained()) {
      zero_if_fresh(context_.device, *p);
      for (const auto& [part, table] : position_rows(dx, p->gradient)) {
        context_.device.run(PositionBackward{part, table, kAddPositions});
      }
    }
    store_.end_backward(*rest_);
  }
  if (table_.is_frozen()) return;
  if (context_.model.ends.embedding_scale != 1) {
    const Tensor unscaled = std::move(dx);
    dx = allocate_activation(context_, unscaled.shape(), kScale.text);
    context_.device.run(Copy{unscaled, dx, kScale});
    scale(dx);
  }
  dx = enter_tensor_parallel(context_, dx, {ModelPart::kTensorParallel, "embedding.gather"});
  store_.begin_backward(table_);
  Parameter& table = table_.parameters().front();
  zero_if_fresh(context_.device, table);
  context_.device.run(EmbeddingBackward{saved.tokens, dx, table.gradient,
                                        local_sizes(context_).vocab_begin, kLookup});
  store_.end_backward(table_);
}

}  // namespace tpsim

#include "reference_model/layers/head.h"

#include "reference_model/layers/linear.h"
#include "reference_model/layers/weight_names.h"
#include "reference_model/parallel/mappings.h"

namespace tpsim {
namespace {

constexpr Label kLogits{ModelPart::kHead, "head.logits"};
constexpr Label kConvert{ModelPart::kHead, "head.convert"};
constexpr Label kShape{ModelPart::kHead, "head.shape_logits"};
constexpr Label kMax{ModelPart::kLoss, "head.max"};
constexpr Label kSums{ModelPart::kLoss, "head.sums"};
constexpr Label kLoss{ModelPart::kLoss, "head.loss"};
constexpr Label kHeadReduced{ModelPart::kColumnParallelBackward, "head.reduce"};

std::string final_norm_name(const ModelSpec& model) { return names_of(model).final_norm; }

ParameterUnit& add_final_norm(const RankContext& context, ParameterStore& store) {
  SpecList specs(context, "");
  Norm::specify(final_norm_name(context.model), specs);
  return store.add_unit(specs.take_outer());
}

Tensor allocate_statistic(const RankContext& context, Shape shape, const char* label) {
  return context.device.allocate(shape, DType::kFloat32, MemoryCategory::kActivations, label);
}

}  // namespace

Head::Head(const RankContext& context, ParameterStore& store, ParameterUnit& word_embeddings)
    : context_(context),
      store_(store),
      table_(word_embeddings),
      norm_unit_(add_final_norm(context, store)),
      norm_(norm_unit_, final_norm_name(context.model)) {
  // In backward the wgrad GEMM of the head writes the table's gradient first. The gradient of a
  // tied embedding follows.
  table_.parameters().front().spec.is_multiplied = true;
}

Tensor Head::forward(const Tensor& x, const Tensor& labels, HeadSaved& saved) {
  store_.begin_forward(norm_unit_);
  const Tensor normed = norm_.forward(context_, x, saved.norm, "head.norm");
  store_.end_forward(norm_unit_);
  saved.labels = labels;

  store_.begin_forward(table_);
  const Tensor inside =
      enter_tensor_parallel(context_, normed, {ModelPart::kTensorParallel, "head.gather"});
  if (table_.parameters().front().is_trained()) saved.x = kept_input(context_, normed, inside);
  saved.logits = linear_forward(context_, inside, table_.parameters().front(), kLogits);
  store_.end_forward(table_);

  if (copies_logits(context_.options)) saved.logits = converted(saved.logits, DType::kFloat32);
  shape_logits(saved);

  if (context_.options.online_loss) {
    online_softmax_stats(saved);
  } else {
    take_sums(saved);
  }
  context_.groups.tensor.all_reduce(saved.sums, ReduceOp::kSum, kSums);
  Tensor loss = allocate_statistic(context_, {saved.logits.rows()}, kLoss.text);
  context_.device.run(CrossEntropyLoss{saved.sums, loss, kLoss});
  return loss;
}

void Head::take_sums(HeadSaved& saved) const {
  const LocalSizes sizes = local_sizes(context_);
  const std::int64_t tokens = saved.logits.rows();
  saved.max = allocate_statistic(context_, {tokens}, kMax.text);
  context_.device.run(VocabMax{saved.logits, saved.max, sizes.vocab_columns, kMax});
  context_.groups.tensor.all_reduce(saved.max, ReduceOp::kMax, kMax);
  saved.sums = allocate_statistic(context_, {2, tokens}, kSums.text);
  context_.device.run(VocabSums{saved.logits, saved.max, saved.labels, saved.sums,
                                sizes.vocab_begin, sizes.vocab_columns, kSums});
}

// Reads the logits once: the sums are relative to this rank's own maxima, and are rescaled when the
// maxima over all ranks are known.
void Head::online_softmax_stats(HeadSaved& saved) const {
  const LocalSizes sizes = local_sizes(context_);
  const std::int64_t tokens = saved.logits.rows();
  saved.max = allocate_statistic(context_, {tokens}, kMax.text);
  saved.sums = allocate_statistic(context_, {2, tokens}, kSums.text);
  context_.device.run(VocabMax{.logits = saved.logits,
                               .max = saved.max,
                               .columns = sizes.vocab_columns,
                               .label = kMax,
                               .labels = saved.labels,
                               .sums = saved.sums,
                               .vocab_begin = sizes.vocab_begin});
  if (context_.groups.tensor.size() == 1) return;
  const Tensor own = allocate_statistic(context_, {tokens}, kMax.text);
  context_.device.run(Copy{saved.max, own, kMax});
  context_.groups.tensor.all_reduce(saved.max, ReduceOp::kMax, kMax);
  context_.device.run(VocabRescale{own, saved.max, saved.labels, saved.sums, sizes.vocab_begin,
                                   sizes.vocab_columns, kSums});
}

// Applies the model's logit_scale and logit_cap. The loss overwrites the logits, so the backward of
// the cap needs a copy.
void Head::shape_logits(HeadSaved& saved) const {
  const EndShape& ends = context_.model.ends;
  const auto scale = static_cast<float>(ends.logit_scale);
  if (ends.logit_cap == 0) {
    if (scale != 1) context_.device.run(Scale{saved.logits, scale, kShape});
    return;
  }
  context_.device.run(SoftCapForward{saved.logits, saved.logits, scale,
                                     static_cast<float>(ends.logit_cap), kShape});
  saved.capped = context_.device.allocate(saved.logits.shape(), saved.logits.dtype(),
                                          MemoryCategory::kActivations, kShape.text);
  context_.device.run(Copy{saved.logits, saved.capped, kShape});
}

void Head::shape_logits_backward(HeadSaved& saved) const {
  const EndShape& ends = context_.model.ends;
  const auto scale = static_cast<float>(ends.logit_scale);
  if (ends.logit_cap == 0) {
    if (scale != 1) context_.device.run(Scale{saved.logits, scale, kShape});
    return;
  }
  context_.device.run(SoftCapBackward{saved.capped, saved.logits, scale,
                                      static_cast<float>(ends.logit_cap), kShape});
  saved.capped = Tensor();
}

Tensor Head::converted(const Tensor& logits, DType dtype) const {
  Tensor copy =
      context_.device.allocate(logits.shape(), dtype, MemoryCategory::kActivations, kConvert.text);
  context_.device.run(Cast{logits, copy, kConvert});
  return copy;
}

Tensor Head::backward(float scale, HeadSaved saved) {
  const LocalSizes sizes = local_sizes(context_);
  context_.device.run(CrossEntropyBackward{saved.logits, saved.max, saved.sums, saved.labels,
                                           sizes.vocab_begin, sizes.vocab_columns, scale, kLoss});
  shape_logits_backward(saved);
  if (copies_logits(context_.options)) saved.logits = converted(saved.logits, context_.plan.dtype);
  store_.begin_backward(table_);
  Parameter& table = table_.parameters().front();
  Tensor dx = linear_input_gradient(context_, saved.logits, table, kLogits);
  Tensor x =
      regather_input(context_, saved.x, {ModelPart::kColumnParallelBackward, "head.regather"});
  dx = leave_overlapped(context_, std::move(dx), kHeadReduced, [&] {
    linear_weight_gradient(context_, matrix_of(saved.logits), matrix_of(x), table, kLogits);
    x = Tensor();
    store_.end_backward(table_);
    saved.logits = saved.x = Tensor();
  });
  store_.begin_backward(norm_unit_);
  dx = norm_.backward(context_, dx, saved.norm, Tensor(), "head.norm");
  store_.end_backward(norm_unit_);
  return dx;
}

}  // namespace tpsim

#include "reference_model/layers/attention_core.h"

#include <bit>
#include <cmath>

#include "reference_model/layers/rotary_table.h"

namespace tpsim {
namespace {

constexpr Label kScores{ModelPart::kAttentionCore, "attention.scores"};
constexpr Label kSoftmax{ModelPart::kAttentionCore, "attention.softmax"};
constexpr Label kDropout{ModelPart::kAttentionCore, "attention.dropout"};
constexpr Label kValues{ModelPart::kAttentionCore, "attention.values"};
constexpr Label kSoftCap{ModelPart::kAttentionCore, "attention.soft_cap"};
constexpr Label kFlash{ModelPart::kAttentionCore, "attention.flash"};
constexpr Label kAddKeyValues{ModelPart::kContextParallel, "attention.add_key_values"};

// Returns the [positions, head_dim] matrices of every `step`-th head, starting at head `first`, for
// a batched GEMM.
Matrix head_matrices(const Heads& x, std::int64_t positions, std::int64_t head_dim,
                     std::int64_t first, std::int64_t step) {
  return Matrix{.tensor = x.tensor,
                .rows = positions,
                .cols = head_dim,
                .row_stride = x.position_stride,
                .offset = x.offset + first * x.head_stride,
                .outer_stride = x.sample_stride,
                .inner_stride = step * x.head_stride};
}

// Returns the [queries, keys] matrices of the score tensor for every `step`-th head, starting at
// head `first`.
Matrix score_matrices(const Tensor& scores, const AttentionDims& d, std::int64_t first,
                      std::int64_t step) {
  const std::int64_t keys = key_count(d), size = d.seq * keys;
  return Matrix{.tensor = scores,
                .rows = d.seq,
                .cols = keys,
                .row_stride = keys,
                .offset = first * size,
                .outer_stride = d.heads * size,
                .inner_stride = step * size};
}

Matrix transposed(Matrix matrix) {
  matrix.transposed = true;
  return matrix;
}

}  // namespace

std::vector<float> alibi_slopes(std::int64_t heads) {
  const auto power_of_two =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  const double base = 8.0 / static_cast<double>(power_of_two);
  std::vector<float> slopes;
  for (std::int64_t i = 1; i <= power_of_two; ++i) {
    slopes.push_back(static_cast<float>(std::exp2(-base * static_cast<double>(i))));
  }
  for (std::int64_t i = 1; i <= heads - power_of_two; ++i) {
    slopes.push_back(static_cast<float>(std::exp2(-base / 2 * static_cast<double>(2 * i - 1))));
  }
  return slopes;
}

AttentionCore::AttentionCore(const RankContext& context, const Weights& weights)
    : context_(context), weights_(weights) {
  const LocalSizes sizes = local_sizes(context);
  const AttentionShape& attention = context.model.attention;
  const std::int64_t head_dim = attention.head_dim;
  scale_ = attention.score.scale > 0 ? static_cast<float>(attention.score.scale)
                                     : 1.0F / std::sqrt(static_cast<float>(head_dim));
  const std::int64_t own_value_dim = value_dim(attention) != head_dim ? value_dim(attention) : 0;
  layout_ = {sizes.batch,  sizes.heads, sizes.kv_heads, head_dim, context.model.fused_qkv,
             own_value_dim};
  for (const SequenceRun& run : sequence_runs(context)) {
    const AttentionDims dims{sizes.batch,    run.count, sizes.heads,
                             sizes.kv_heads, head_dim,  run.position + run.count,
                             own_value_dim};
    runs_.push_back({dims, run.row, run.position});
  }
  const auto upload = [&](std::span<const float> values, const char* label) {
    Tensor tensor = context.device.allocate({static_cast<std::int64_t>(values.size())},
                                            DType::kFloat32, MemoryCategory::kWorkspace, label);
    context.device.upload(std::as_bytes(values), tensor);
    return tensor;
  };
  if (attention.position == PositionKind::kRotary) {
    const RotaryAngles table = rotary_table(context.model);
    if (!table.is_plain) frequencies_ = upload(table.frequencies, "rotary_frequencies");
    magnitude_ = table.magnitude;
  }
  if (attention.position != PositionKind::kAlibi) return;
  const std::vector<float> all = alibi_slopes(attention.heads);
  slopes_ = upload(std::span(all).subspan(static_cast<std::size_t>(context.at.tp * sizes.heads),
                                          static_cast<std::size_t>(sizes.heads)),
                   "alibi_slopes");
}

Visibility AttentionCore::visibility() const {
  const AttentionShape& attention = context_.model.attention;
  const std::int64_t seq = context_.model.seq;
  // A window or chunk that spans the whole sequence does not limit anything. Attention to positions
  // that an indexer selects is modeled as a window of the same number of keys.
  const std::int64_t window = reach(attention);
  return {window >= seq ? 0 : window, attention.chunk >= seq ? 0 : attention.chunk};
}

Heads AttentionCore::queries_of(const Run& run, Heads heads) const {
  heads.offset += run.row * heads.position_stride;
  return heads;
}

Heads AttentionCore::context_view(const Tensor& context) const {
  const std::int64_t width = context.cols();
  return Heads{context, 0, layout_.batch * width, width, value_width(layout_)};
}

AttentionCore::Operands AttentionCore::operands(const Run& run, const Tensor& qkv,
                                                const QkvView& keys, const Tensor& out) const {
  return {{queries_of(run, view_of(layout_, qkv).q), keys.k, keys.v},
          {},
          queries_of(run, context_view(out)),
          {}};
}

void AttentionCore::forward(CoreSaved& saved) const {
  saved.context = allocate_activation(
      context_, {saved.qkv.shape()[0], layout_.batch, layout_.heads * value_width(layout_)},
      "attention.context");
  const QkvView keys =
      shares_sequences()
          ? view_of_key_values(layout_, gather_key_values(context_, layout_, saved.qkv))
          : view_of(layout_, saved.qkv);
  saved.runs.resize(runs_.size());
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    run_forward(runs_[i], operands(runs_[i], saved.qkv, keys, saved.context), saved.seed + i,
                saved.runs[i]);
  }
}

void AttentionCore::run_forward(const Run& run, const Operands& x, std::uint64_t seed,
                                CoreSaved::Run& saved) const {
  if (context_.plan.attention == AttentionKind::kFlash) return flash_forward(run, x, saved);
  unfused_values(run, x, draw_probs(run, x, seed, saved));
  if (context_.plan.recompute == Recompute::kSelective) saved = {};
}

Tensor AttentionCore::draw_probs(const Run& run, const Operands& x, std::uint64_t seed,
                                 CoreSaved::Run& saved) const {
  saved.probs = unfused_probs(run, x, saved);
  const auto rate = static_cast<float>(context_.model.attention_dropout);
  if (rate == 0) return saved.probs;
  saved.mask = allocate_mask(context_, saved.probs, kDropout.text);
  saved.dropped = allocate_activation(context_, saved.probs.shape(), kDropout.text);
  context_.device.run(DropoutForward{.x = saved.probs,
                                     .bias = {},
                                     .residual = {},
                                     .y = saved.dropped,
                                     .mask = saved.mask,
                                     .rate = rate,
                                     .seed = seed,
                                     .label = kDropout});
  return saved.dropped;
}

// Query head h reads key head h / group. One batched GEMM runs the g-th query head of every group.
Tensor AttentionCore::unfused_probs(const Run& run, const Operands& x,
                                    CoreSaved::Run& saved) const {
  const AttentionDims& d = run.dims;
  const std::int64_t group = d.heads / d.kv_heads;
  Tensor scores =
      allocate_activation(context_, {d.batch * d.heads, d.seq, key_count(d)}, kScores.text);
  for (std::int64_t g = 0; g < group; ++g) {
    context_.device.run(
        Matmul{.a = head_matrices(x.x.q, d.seq, d.head_dim, g, group),
               .b = transposed(head_matrices(x.x.k, key_count(d), d.head_dim, 0, 1)),
               .c = score_matrices(scores, d, g, group),
               .outer = d.batch,
               .inner = d.kv_heads,
               .label = kScores});
  }
  float scale = scale_;
  const auto cap = static_cast<float>(context_.model.attention.score.cap);
  if (cap > 0) {
    saved.capped = scores;
    context_.device.run(SoftCapForward{scores, saved.capped, scale_, cap, kSoftCap});
    scores = allocate_activation(context_, scores.shape(), kSoftmax.text);
    context_.device.run(Copy{saved.capped, scores, kSoftCap});
    scale = 1;
  }
  context_.device.run(SoftmaxForward{.scores = scores,
                                     .slopes = slopes_,
                                     .heads = d.heads,
                                     .scale = scale,
                                     .visibility = visibility(),
                                     .sinks = weight_of(weights_.sinks),
                                     .label = kSoftmax});
  return scores;
}

void AttentionCore::unfused_values(const Run& run, const Operands& x, const Tensor& probs) const {
  const AttentionDims& d = run.dims;
  const std::int64_t group = d.heads / d.kv_heads;
  for (std::int64_t g = 0; g < group; ++g) {
    context_.device.run(Matmul{.a = score_matrices(probs, d, g, group),
                               .b = head_matrices(x.x.v, key_count(d), value_width(d), 0, 1),
                               .c = head_matrices(x.out, d.seq, value_width(d), g, group),
                               .outer = d.batch,
                               .inner = d.kv_heads,
                               .label = kValues});
  }
}

void AttentionCore::flash_forward(const Run& run, const Operands& x, CoreSaved::Run& saved) const {
  const AttentionDims& d = run.dims;
  saved.log_sum = context_.device.allocate({d.batch, d.heads, d.seq}, DType::kFloat32,
                                           MemoryCategory::kActivations, "attention.log_sum");
  context_.device.run(FlashForward{.dims = d,
                                   .q = x.x.q,
                                   .k = x.x.k,
                                   .v = x.x.v,
                                   .o = x.out,
                                   .log_sum = saved.log_sum,
                                   .slopes = slopes_,
                                   .scale = scale_,
                                   .visibility = visibility(),
                                   .cap = static_cast<float>(context_.model.attention.score.cap),
                                   .sinks = weight_of(weights_.sinks),
                                   .label = kFlash});
}

Tensor AttentionCore::backward(const Tensor& dcontext, CoreSaved& saved) const {
  Tensor dqkv = allocate_activation(context_, saved.qkv.shape(), "attention.dqkv");
  if (shares_sequences()) {
    reduce_key_values(context_, layout_, key_value_gradients(dcontext, dqkv, saved), dqkv);
    return dqkv;
  }
  Operands x = operands(runs_[0], saved.qkv, view_of(layout_, saved.qkv), saved.context);
  x.dx = view_of(layout_, dqkv);
  x.dout = context_view(dcontext);
  run_backward(runs_[0], x, saved.seed, saved.runs[0]);
  return dqkv;
}

// Adds the gradients of all runs of queries. The run with the most keys comes first: its gradients
// overwrite `sum`, and the gradients of keys after its end are cleared.
Tensor AttentionCore::key_value_gradients(const Tensor& dcontext, const Tensor& dqkv,
                                          CoreSaved& saved) const {
  const Tensor key_values = gather_key_values(context_, layout_, saved.qkv);
  const Shape whole = key_values.shape();
  Tensor sum = allocate_activation(context_, whole, "attention.dkey_values");
  for (std::size_t i = runs_.size(); i-- > 0;) {
    const Run& run = runs_[i];
    const Shape seen{key_count(run.dims), whole[1], whole[2]};
    const bool writes = i + 1 == runs_.size();
    const Tensor part =
        writes ? sum.slice(0, seen) : allocate_activation(context_, seen, "attention.dkey_values");
    Operands x = operands(run, saved.qkv, view_of_key_values(layout_, key_values), saved.context);
    x.dx = view_of_key_values(layout_, part);
    x.dx.q = queries_of(run, view_of(layout_, dqkv).q);
    x.dout = queries_of(run, context_view(dcontext));
    run_backward(run, x, saved.seed + i, saved.runs[i]);
    const std::int64_t later = sum.elements() - part.elements();
    if (!writes) {
      context_.device.run(Add{part, sum.slice(0, seen), kAddKeyValues});
    } else if (later > 0) {
      context_.device.run(Fill{sum.slice(part.elements(), later), 0, kAddKeyValues});
    }
  }
  return sum;
}

void AttentionCore::run_backward(const Run& run, const Operands& x, std::uint64_t seed,
                                 CoreSaved::Run& saved) const {
  if (context_.plan.attention == AttentionKind::kFlash) {
    flash_backward(run, x, saved);
  } else {
    unfused_backward(run, x, seed, saved);
  }
}

void AttentionCore::unfused_backward(const Run& run, const Operands& x, std::uint64_t seed,
                                     CoreSaved::Run& saved) const {
  if (!saved.probs.defined()) draw_probs(run, x, seed, saved);  // selective recompute
  const Tensor multiplied = saved.dropped.defined() ? saved.dropped : saved.probs;
  Tensor dprobs = allocate_activation(context_, saved.probs.shape(), "attention.dscores");
  const AttentionDims& d = run.dims;
  const std::int64_t group = d.heads / d.kv_heads;
  const auto of_queries = [&](const Heads& heads, std::int64_t g) {
    return head_matrices(heads, d.seq, d.head_dim, g, group);
  };
  const auto of_outputs = [&](std::int64_t g) {
    return head_matrices(x.dout, d.seq, value_width(d), g, group);
  };
  const auto of_keys = [&](const Heads& heads) {
    return head_matrices(heads, key_count(d), d.head_dim, 0, 1);
  };
  const auto of_values = [&](const Heads& heads) {
    return head_matrices(heads, key_count(d), value_width(d), 0, 1);
  };
  const auto multiply = [&](Matrix a, Matrix b, Matrix c, float beta, const Label& label) {
    context_.device.run(Matmul{.a = std::move(a),
                               .b = std::move(b),
                               .c = std::move(c),
                               .outer = d.batch,
                               .inner = d.kv_heads,
                               .beta = beta,
                               .label = label});
  };
  for (std::int64_t g = 0; g < group; ++g) {
    multiply(of_outputs(g), transposed(of_values(x.x.v)), score_matrices(dprobs, d, g, group), 0.0F,
             kValues);
    multiply(transposed(score_matrices(multiplied, d, g, group)), of_outputs(g), of_values(x.dx.v),
             g == 0 ? 0.0F : 1.0F, kValues);
  }
  saved.dropped = Tensor();
  if (saved.mask.defined()) {
    context_.device.run(DropoutBackward{dprobs, saved.mask, dprobs,
                                        static_cast<float>(context_.model.attention_dropout),
                                        kDropout});
    saved.mask = Tensor();
  }
  softmax_backward(run, dprobs, saved);
  for (std::int64_t g = 0; g < group; ++g) {
    multiply(score_matrices(dprobs, d, g, group), of_keys(x.x.k), of_queries(x.dx.q, g), 0.0F,
             kScores);
    multiply(transposed(score_matrices(dprobs, d, g, group)), of_queries(x.x.q, g), of_keys(x.dx.k),
             g == 0 ? 0.0F : 1.0F, kScores);
  }
}

// Works in place: `dprobs` becomes the gradient of the scores.
void AttentionCore::softmax_backward(const Run& run, const Tensor& dprobs,
                                     CoreSaved::Run& saved) const {
  const auto cap = static_cast<float>(context_.model.attention.score.cap);
  context_.device.run(SoftmaxBackward{.probs = saved.probs,
                                      .dprobs = dprobs,
                                      .scale = cap > 0 ? 1.0F : scale_,
                                      .visibility = visibility(),
                                      .heads = run.dims.heads,
                                      .dsinks = gradient_of(context_.device, weights_.sinks),
                                      .label = kSoftmax});
  saved.probs = Tensor();
  if (cap > 0) context_.device.run(SoftCapBackward{saved.capped, dprobs, scale_, cap, kSoftCap});
  saved.capped = Tensor();
}

void AttentionCore::flash_backward(const Run& run, const Operands& x,
                                   const CoreSaved::Run& saved) const {
  context_.device.run(FlashBackward{.dims = run.dims,
                                    .q = x.x.q,
                                    .k = x.x.k,
                                    .v = x.x.v,
                                    .o = x.out,
                                    .d_o = x.dout,
                                    .log_sum = saved.log_sum,
                                    .slopes = slopes_,
                                    .dq = x.dx.q,
                                    .dk = x.dx.k,
                                    .dv = x.dx.v,
                                    .scale = scale_,
                                    .visibility = visibility(),
                                    .cap = static_cast<float>(context_.model.attention.score.cap),
                                    .sinks = weight_of(weights_.sinks),
                                    .dsinks = gradient_of(context_.device, weights_.sinks),
                                    .label = kFlash});
}

}  // namespace tpsim

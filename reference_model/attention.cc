#include "reference_model/attention.h"

#include <bit>
#include <cmath>

#include "reference_model/linear.h"
#include "reference_model/mappings.h"
#include "reference_model/norm.h"

namespace tpsim {
namespace {

struct Projection {
  const char* name;
  std::int64_t rows;  // global
};

// Names and widths of the q, k, v matrices.
std::vector<Projection> projections_of(const ModelSpec& model) {
  const std::int64_t q = query_width(model), kv = kv_width(model);
  if (model.fused_qkv) return {{"self_attention.query_key_value", q + 2 * kv}};
  if (model.mlp == MlpKind::kSwiglu) {
    return {{"self_attn.q_proj", q}, {"self_attn.k_proj", kv}, {"self_attn.v_proj", kv}};
  }
  return {{"self_attention.query", q}, {"self_attention.key", kv}, {"self_attention.value", kv}};
}

const char* output_name(const ModelSpec& model) {
  return model.mlp == MlpKind::kSwiglu ? "self_attn.o_proj" : "self_attention.dense";
}

// Where q, k and v lie in a row of the projection's output.
struct QkvView {
  Heads q, k, v;
};

QkvView view_of(const Tensor& qkv, const AttentionDims& d, bool fused) {
  const std::int64_t width = (d.heads + 2 * d.kv_heads) * d.head_dim;
  const auto heads = [&](std::int64_t offset, std::int64_t stride) {
    return Heads{qkv, offset, d.batch * width, width, stride};
  };
  if (fused) {
    const std::int64_t stride = 3 * d.head_dim;
    return {heads(0, stride), heads(d.head_dim, stride), heads(2 * d.head_dim, stride)};
  }
  const std::int64_t q = d.heads * d.head_dim, kv = d.kv_heads * d.head_dim;
  return {heads(0, d.head_dim), heads(q, d.head_dim), heads(q + kv, d.head_dim)};
}

Heads context_view(const Tensor& context, const AttentionDims& d) {
  const std::int64_t width = d.heads * d.head_dim;
  return Heads{context, 0, d.batch * width, width, d.head_dim};
}

// [seq, head_dim] matrices of every `step`-th head from `first`, for batched products.
Matrix head_matrices(const Heads& x, const AttentionDims& d, std::int64_t first, std::int64_t step,
                     bool transposed = false) {
  return Matrix{.tensor = x.tensor,
                .rows = d.seq,
                .cols = d.head_dim,
                .row_stride = x.position_stride,
                .offset = x.offset + first * x.head_stride,
                .outer_stride = x.sample_stride,
                .inner_stride = step * x.head_stride,
                .transposed = transposed};
}

// [seq, seq] matrices of the score tensor, likewise.
Matrix score_matrices(const Tensor& scores, const AttentionDims& d, std::int64_t first,
                      std::int64_t step, bool transposed = false) {
  const std::int64_t square = d.seq * d.seq;
  return Matrix{.tensor = scores,
                .rows = d.seq,
                .cols = d.seq,
                .row_stride = d.seq,
                .offset = first * square,
                .outer_stride = d.heads * square,
                .inner_stride = step * square,
                .transposed = transposed};
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

void Attention::specify(const RankContext& context, const std::string& block,
                        std::vector<ParameterSpec>& specs) {
  const ModelSpec& model = context.model;
  const std::int64_t tp = context.plan.degrees.tp;
  for (const auto& [name, rows] : projections_of(model)) {
    specs.push_back({.name = block + name + ".weight",
                     .shape = {rows / tp, model.hidden},
                     .sharding = Sharding::kRows,
                     .deviation = model.initializer_range,
                     .global_rows = rows});
    if (model.linear_bias) {
      specs.push_back({.name = block + name + ".bias",
                       .shape = {rows / tp},
                       .sharding = Sharding::kRows,
                       .initial = InitialValue::kZeros,
                       .global_rows = rows});
    }
  }
  specs.push_back({.name = block + output_name(model) + ".weight",
                   .shape = {model.hidden, query_width(model) / tp},
                   .sharding = Sharding::kColumns,
                   .deviation = model.initializer_range,
                   .global_rows = model.hidden});
  if (model.linear_bias) {
    specs.push_back({.name = block + output_name(model) + ".bias",
                     .shape = {model.hidden},
                     .initial = InitialValue::kZeros,
                     .global_rows = model.hidden});
  }
}

Attention::Attention(const RankContext& context, ParameterUnit& unit, const std::string& block)
    : context_(context),
      sizes_(local_sizes(context)),
      dims_{sizes_.batch, sizes_.seq, sizes_.heads, sizes_.kv_heads,
            context.model.attention.head_dim},
      scale_(1.0F / std::sqrt(static_cast<float>(context.model.attention.head_dim))),
      output_(get_parameter(unit, block + output_name(context.model) + ".weight")),
      output_bias_(find_parameter(unit, block + output_name(context.model) + ".bias")) {
  for (const auto& [name, rows] : projections_of(context.model)) {
    projections_.push_back(&get_parameter(unit, block + name + ".weight"));
    projection_biases_.push_back(find_parameter(unit, block + name + ".bias"));
  }
  if (context.model.attention.position != PositionKind::kAlibi) return;
  const std::vector<float> all = alibi_slopes(context.model.attention.heads);
  slopes_ = context.device.allocate({sizes_.heads}, DType::kFloat32, MemoryCategory::kWorkspace,
                                    "alibi_slopes");
  context.device.upload(
      std::as_bytes(std::span(all).subspan(static_cast<std::size_t>(context.at.tp * sizes_.heads),
                                           static_cast<std::size_t>(sizes_.heads))),
      slopes_);
}

Tensor Attention::forward(const Tensor& x, AttentionSaved& saved) const {
  saved.x = x;
  saved.qkv = project_qkv(enter_tensor_parallel(context_, x, "attention.gather"));
  if (context_.model.attention.position == PositionKind::kRotary) rotate(saved.qkv, false);
  core_forward(saved);
  if (context_.plan.recompute == Recompute::kSelective) {
    saved.probs = saved.mask = saved.dropped = Tensor();
  }
  return linear_forward(context_, saved.context, output_.weight, "attention.output");
}

// Separate matrices write adjacent columns of one output.
Tensor Attention::project_qkv(const Tensor& x) const {
  const std::int64_t width = (dims_.heads + 2 * dims_.kv_heads) * dims_.head_dim;
  Tensor qkv = allocate_activation(context_, {dims_.seq, dims_.batch, width}, "attention.qkv");
  side_by_side_forward(context_, x, projections_, qkv, "attention.qkv");
  if (projection_biases_.size() == 1 && projection_biases_[0] != nullptr) {
    context_.device.run(
        BiasResidual{qkv, projection_biases_[0]->weight, Tensor(), qkv, "attention.qkv_bias"});
  }
  return qkv;
}

void Attention::rotate(const Tensor& qkv, bool inverse) const {
  const QkvView view = view_of(qkv, dims_, context_.model.fused_qkv);
  AttentionDims keys = dims_;
  keys.heads = dims_.kv_heads;
  const auto theta = static_cast<float>(context_.model.attention.rope_theta);
  context_.device.run(Rotary{dims_, view.q, theta, inverse, 0, "attention.rotary"});
  context_.device.run(Rotary{keys, view.k, theta, inverse, 0, "attention.rotary"});
}

void Attention::core_forward(AttentionSaved& saved) const {
  saved.context = allocate_activation(
      context_, {dims_.seq, dims_.batch, dims_.heads * dims_.head_dim}, "attention.context");
  if (context_.plan.attention == AttentionKind::kFlash) {
    flash_forward(saved);
    return;
  }
  unfused_values(saved.qkv, draw_probs(saved), saved.context);
}

Tensor Attention::draw_probs(AttentionSaved& saved) const {
  saved.probs = unfused_probs(saved.qkv);
  const auto rate = static_cast<float>(context_.model.attention_dropout);
  if (rate == 0) return saved.probs;
  saved.mask = allocate_mask(context_, saved.probs, "attention.dropout");
  saved.dropped = allocate_activation(context_, saved.probs.shape(), "attention.dropout");
  context_.device.run(DropoutForward{.x = saved.probs,
                                     .bias = {},
                                     .residual = {},
                                     .y = saved.dropped,
                                     .mask = saved.mask,
                                     .rate = rate,
                                     .seed = saved.seed,
                                     .label = "attention.dropout"});
  return saved.dropped;
}

// Query head h reads key head h / group: one batched product per place in the group.
Tensor Attention::unfused_probs(const Tensor& qkv) const {
  const QkvView view = view_of(qkv, dims_, context_.model.fused_qkv);
  const std::int64_t group = dims_.heads / dims_.kv_heads;
  Tensor scores = allocate_activation(context_, {dims_.batch * dims_.heads, dims_.seq, dims_.seq},
                                      "attention.scores");
  for (std::int64_t g = 0; g < group; ++g) {
    context_.device.run(Matmul{.a = head_matrices(view.q, dims_, g, group),
                               .b = head_matrices(view.k, dims_, 0, 1, true),
                               .c = score_matrices(scores, dims_, g, group),
                               .outer = dims_.batch,
                               .inner = dims_.kv_heads,
                               .label = "attention.scores"});
  }
  context_.device.run(SoftmaxForward{scores, slopes_, dims_.heads, scale_, "attention.softmax"});
  return scores;
}

void Attention::unfused_values(const Tensor& qkv, const Tensor& probs, const Tensor& out) const {
  const QkvView view = view_of(qkv, dims_, context_.model.fused_qkv);
  const Heads o = context_view(out, dims_);
  const std::int64_t group = dims_.heads / dims_.kv_heads;
  for (std::int64_t g = 0; g < group; ++g) {
    context_.device.run(Matmul{.a = score_matrices(probs, dims_, g, group),
                               .b = head_matrices(view.v, dims_, 0, 1),
                               .c = head_matrices(o, dims_, g, group),
                               .outer = dims_.batch,
                               .inner = dims_.kv_heads,
                               .label = "attention.values"});
  }
}

void Attention::flash_forward(AttentionSaved& saved) const {
  const QkvView view = view_of(saved.qkv, dims_, context_.model.fused_qkv);
  saved.log_sum = context_.device.allocate({dims_.batch, dims_.heads, dims_.seq}, DType::kFloat32,
                                           MemoryCategory::kActivations, "attention.log_sum");
  context_.device.run(FlashForward{dims_, view.q, view.k, view.v,
                                   context_view(saved.context, dims_), saved.log_sum, slopes_,
                                   scale_, "attention.flash"});
}

Tensor Attention::backward(const Tensor& dy, AttentionSaved saved) const {
  Tensor dcontext = linear_input_gradient(context_, dy, output_.weight, "attention.output");
  linear_weight_gradient(context_, dy, saved.context, output_, "attention.output");
  Tensor dqkv = core_backward(dcontext, saved);
  dcontext = Tensor();
  saved.qkv = saved.context = Tensor();
  if (context_.model.attention.position == PositionKind::kRotary) rotate(dqkv, true);

  const Tensor x = enter_tensor_parallel(context_, saved.x, "attention.regather");
  Tensor dx = side_by_side_backward(context_, dqkv, x, projections_, "attention.qkv");
  if (projection_biases_.size() == 1) {
    bias_gradient(context_, dqkv, projection_biases_[0], "attention.qkv_bias");
  }
  return dx;
}

Tensor Attention::core_backward(const Tensor& dcontext, AttentionSaved& saved) const {
  return context_.plan.attention == AttentionKind::kFlash ? flash_backward(dcontext, saved)
                                                          : unfused_backward(dcontext, saved);
}

Tensor Attention::unfused_backward(const Tensor& dcontext, AttentionSaved& saved) const {
  if (!saved.probs.defined()) draw_probs(saved);  // selective recompute
  const Tensor multiplied = saved.dropped.defined() ? saved.dropped : saved.probs;
  const QkvView view = view_of(saved.qkv, dims_, context_.model.fused_qkv);
  const Heads d_o = context_view(dcontext, dims_);
  Tensor dqkv = allocate_activation(context_, saved.qkv.shape(), "attention.dqkv");
  const QkvView dview = view_of(dqkv, dims_, context_.model.fused_qkv);
  Tensor dprobs = allocate_activation(context_, saved.probs.shape(), "attention.dscores");
  const std::int64_t group = dims_.heads / dims_.kv_heads;
  const auto multiply = [&](Matrix a, Matrix b, Matrix c, float beta, const char* label) {
    context_.device.run(Matmul{.a = std::move(a),
                               .b = std::move(b),
                               .c = std::move(c),
                               .outer = dims_.batch,
                               .inner = dims_.kv_heads,
                               .beta = beta,
                               .label = label});
  };
  for (std::int64_t g = 0; g < group; ++g) {
    multiply(head_matrices(d_o, dims_, g, group), head_matrices(view.v, dims_, 0, 1, true),
             score_matrices(dprobs, dims_, g, group), 0.0F, "attention.values");
    multiply(score_matrices(multiplied, dims_, g, group, true), head_matrices(d_o, dims_, g, group),
             head_matrices(dview.v, dims_, 0, 1), g == 0 ? 0.0F : 1.0F, "attention.values");
  }
  saved.dropped = Tensor();
  if (saved.mask.defined()) {
    context_.device.run(DropoutBackward{dprobs, saved.mask, dprobs,
                                        static_cast<float>(context_.model.attention_dropout),
                                        "attention.dropout"});
    saved.mask = Tensor();
  }
  context_.device.run(SoftmaxBackward{saved.probs, dprobs, scale_, "attention.softmax"});
  saved.probs = Tensor();
  for (std::int64_t g = 0; g < group; ++g) {
    multiply(score_matrices(dprobs, dims_, g, group), head_matrices(view.k, dims_, 0, 1),
             head_matrices(dview.q, dims_, g, group), 0.0F, "attention.scores");
    multiply(score_matrices(dprobs, dims_, g, group, true), head_matrices(view.q, dims_, g, group),
             head_matrices(dview.k, dims_, 0, 1), g == 0 ? 0.0F : 1.0F, "attention.scores");
  }
  return dqkv;
}

Tensor Attention::flash_backward(const Tensor& dcontext, AttentionSaved& saved) const {
  const QkvView view = view_of(saved.qkv, dims_, context_.model.fused_qkv);
  Tensor dqkv = allocate_activation(context_, saved.qkv.shape(), "attention.dqkv");
  const QkvView dview = view_of(dqkv, dims_, context_.model.fused_qkv);
  context_.device.run(FlashBackward{dims_, view.q, view.k, view.v,
                                    context_view(saved.context, dims_),
                                    context_view(dcontext, dims_), saved.log_sum, slopes_, dview.q,
                                    dview.k, dview.v, scale_, "attention.flash"});
  return dqkv;
}

}  // namespace tpsim

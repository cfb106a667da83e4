// Norm, rotary embedding and temperature of queries and keys, between the QKV projection and the
// core.
#include "reference_model/layers/attention_core.h"
#include "reference_model/layers/rotary_table.h"

namespace tpsim {
namespace {

constexpr Label kRotary{ModelPart::kRotary, "attention.rotary"};
constexpr Label kQkNorm{ModelPart::kAttentionNorm, "attention.qk_norm"};
constexpr Label kTemperature{ModelPart::kRotary, "attention.temperature"};

// Returns the dimensions over which the q or k norm runs: each head separately, or all heads as
// one.
AttentionDims normed_heads(const QkvLayout& layout, QkNorm norm, std::int64_t rows,
                           std::int64_t heads) {
  AttentionDims dims{layout.batch, rows, heads, heads, layout.head_dim};
  if (norm == QkNorm::kWidth) {
    dims.heads = dims.kv_heads = 1;
    dims.head_dim = heads * layout.head_dim;
  }
  return dims;
}

NormKind head_norm_kind(QkNorm norm) {
  return norm == QkNorm::kEachHead ? NormKind::kLayerNorm : NormKind::kRmsNorm;
}

}  // namespace

void AttentionCore::prepare(CoreSaved& saved) const {
  const AttentionShape& attention = context_.model.attention;
  // LLaMA 4 normalizes after rotary embedding, the other models before.
  const bool turned_first = attention.qk_norm == QkNorm::kPlain;
  if (attention.qk_norm != QkNorm::kNone && !turned_first) normalise(saved);
  if (attention.position == PositionKind::kRotary) {
    const QkvView view = view_of(layout_, saved.qkv);
    rotate(view.q, layout_.heads, false);
    rotate(view.k, layout_.kv_heads, false);
  }
  if (turned_first) normalise(saved);
  scale_by_position(saved.qkv);
}

void AttentionCore::prepare_backward(const Tensor& dqkv, CoreSaved& saved) const {
  const AttentionShape& attention = context_.model.attention;
  const bool turned_first = attention.qk_norm == QkNorm::kPlain;
  scale_by_position(dqkv);
  if (turned_first) normalise_backward(dqkv, saved);
  if (attention.position == PositionKind::kRotary) {
    const QkvView view = view_of(layout_, dqkv);
    rotate(view.q, layout_.heads, true);
    rotate(view.k, layout_.kv_heads, true);
  }
  if (attention.qk_norm != QkNorm::kNone && !turned_first) normalise_backward(dqkv, saved);
}

void AttentionCore::rotate(const Heads& x, std::int64_t heads, bool inverse) const {
  for (const Run& run : runs_) {
    AttentionDims dims = run.dims;
    dims.heads = heads;
    dims.head_dim = turned_width(context_.model.attention);
    context_.device.run(Rotary{.dims = dims,
                               .x = queries_of(run, x),
                               .theta = static_cast<float>(context_.model.attention.rope_theta),
                               .inverse = inverse,
                               .first_position = run.position,
                               .frequencies = frequencies_,
                               .neighbours = context_.model.attention.rotary.neighbours,
                               .magnitude = magnitude_,
                               .label = kRotary});
  }
}

void AttentionCore::scale_by_position(const Tensor& qkv) const {
  const ScoreShape& score = context_.model.attention.score;
  if (score.temperature == 0) return;
  for (const Run& run : runs_) {
    context_.device.run(PositionScale{run.dims, queries_of(run, view_of(layout_, qkv).q),
                                      static_cast<float>(score.temperature),
                                      score.temperature_floor, run.position, kTemperature});
  }
}

void AttentionCore::normalise(CoreSaved& saved) const {
  const QkvView view = view_of(layout_, saved.qkv);
  const QkNorm norm = context_.model.attention.qk_norm;
  const auto run = [&](const Heads& x, std::int64_t heads, Parameter* gain, Tensor& raw) {
    const std::int64_t rows = saved.qkv.shape()[0];
    raw = allocate_activation(context_, {rows, layout_.batch, heads * layout_.head_dim},
                              kQkNorm.text);
    context_.device.run(HeadNormForward{.kind = head_norm_kind(norm),
                                        .dims = normed_heads(layout_, norm, rows, heads),
                                        .x = x,
                                        .gain = weight_of(gain),
                                        .raw = raw,
                                        .epsilon = static_cast<float>(context_.model.norm_epsilon),
                                        .offset = context_.model.norm_plus_one ? 1.0F : 0.0F,
                                        .label = kQkNorm});
  };
  run(view.q, layout_.heads, weights_.q_norm, saved.raw_q);
  run(view.k, layout_.kv_heads, weights_.k_norm, saved.raw_k);
}

void AttentionCore::normalise_backward(const Tensor& dqkv, CoreSaved& saved) const {
  const QkvView view = view_of(layout_, dqkv);
  const QkNorm norm = context_.model.attention.qk_norm;
  const auto run = [&](const Heads& dx, std::int64_t heads, Parameter* gain, Tensor& raw) {
    context_.device.run(
        HeadNormBackward{.kind = head_norm_kind(norm),
                         .dims = normed_heads(layout_, norm, dqkv.shape()[0], heads),
                         .dx = dx,
                         .gain = weight_of(gain),
                         .raw = raw,
                         .dgain = gradient_of(context_.device, gain),
                         .epsilon = static_cast<float>(context_.model.norm_epsilon),
                         .offset = context_.model.norm_plus_one ? 1.0F : 0.0F,
                         .label = kQkNorm});
    raw = Tensor();
  };
  run(view.q, layout_.heads, weights_.q_norm, saved.raw_q);
  run(view.k, layout_.kv_heads, weights_.k_norm, saved.raw_k);
}

}  // namespace tpsim

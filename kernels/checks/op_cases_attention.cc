// op_case() for the ops of kernels/attention_ops.h: creates an op from its key.
#include <cmath>

#include "kernels/checks/op_operands.h"

namespace tpsim {
namespace {

constexpr DType kStatistic = DType::kFloat32;
constexpr Label kCase{ModelPart::kMeasurement, "case"};

// Returns a window of `reach` keys, or chunks of `reach` keys if the variant has kChunked.
Visibility visibility_of(const OpKey& key, std::int64_t reach) {
  const bool chunked = (key.variant & kChunked) != 0;
  return {chunked ? 0 : reach, chunked ? reach : 0};
}

SoftmaxForward softmax_forward(Operands& make, const OpKey& key, bool alibi) {
  const auto [matrices, queries, keys, x3, x4, x5, x6, x7] = key.dims;
  return {.scores = make.normal({matrices, queries, keys}, key.dtype, 3.0),
          .slopes = alibi ? make.slopes(matrices) : Tensor(),
          .heads = matrices,
          .scale = 0.5F,
          .visibility = visibility_of(key, x3),
          .sinks = (key.variant & kSinks) != 0 ? make.normal({matrices}, key.dtype) : Tensor(),
          .label = kCase};
}

// Returns the heads of a tensor [position, sample, head, d], the layout of activations.
Heads heads_of(const Tensor& tensor, const AttentionDims& d, std::int64_t heads) {
  return {tensor, 0, d.batch * heads * d.head_dim, heads * d.head_dim, d.head_dim};
}

// Returns the dimensions of an op whose key has dims {rows, heads, head_dim}.
AttentionDims dims_of_rows(const OpKey& key) {
  return {1, key.dims[0], key.dims[1], key.dims[1], key.dims[2]};
}
Shape shape_of(const AttentionDims& d) { return {d.seq, 1, d.heads * d.head_dim}; }

}  // namespace

SoftmaxForward op_case(Operands& make, const OpKey& key, Of<SoftmaxForward>) {
  return softmax_forward(make, key, (key.variant & kAlibiBias) != 0);
}

SoftmaxBackward op_case(Operands& make, const OpKey& key, Of<SoftmaxBackward>) {
  const SoftmaxForward f = softmax_forward(make, key, false);
  make.device().run(f);
  return SoftmaxBackward{
      .probs = f.scores,
      .dprobs = make.normal(f.scores.shape(), key.dtype),
      .scale = 0.5F,
      .visibility = f.visibility,
      .heads = f.heads,
      .dsinks = f.sinks.defined() ? make.normal({f.heads}, kStatistic) : Tensor(),
      .label = kCase};
}

FlashForward op_case(Operands& make, const OpKey& key, Of<FlashForward>) {
  const auto [batch, queries, heads, kv_heads, head_dim, keys, x6, x7] = key.dims;
  const AttentionDims d{batch, queries, heads, kv_heads, head_dim, keys, x7};
  AttentionDims of_values = d;
  of_values.head_dim = value_width(d);
  const auto random = [&](std::int64_t positions, std::int64_t count) {
    return heads_of(make.normal({positions, d.batch, count * d.head_dim}, key.dtype), d, count);
  };
  const auto values = [&](Tensor tensor, std::int64_t count) {
    return heads_of(tensor, of_values, count);
  };
  const bool sees_all = x6 == 0 || (x7 > 0 && x6 == keys);
  return {.dims = d,
          .q = random(d.seq, d.heads),
          .k = random(key_count(d), d.kv_heads),
          .v = values(make.normal({key_count(d), d.batch, d.kv_heads * value_width(d)}, key.dtype),
                      d.kv_heads),
          .o = values(make.empty({d.seq, d.batch, d.heads * value_width(d)}, key.dtype), d.heads),
          .log_sum = make.empty({d.batch, d.heads, d.seq}, kStatistic),
          .slopes = (key.variant & kAlibiBias) != 0 ? make.slopes(d.heads) : Tensor(),
          .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d.head_dim))),
          .visibility = visibility_of(key, sees_all ? 0 : x6),
          .cap = (key.variant & kCapped) != 0 ? 2.0F : 0.0F,
          .sinks = (key.variant & kSinks) != 0 ? make.normal({d.heads}, key.dtype) : Tensor(),
          .label = kCase};
}

FlashBackward op_case(Operands& make, const OpKey& key, Of<FlashBackward>) {
  const FlashForward f = op_case(make, key, Of<FlashForward>());
  make.device().run(f);
  const auto gradient_of = [&](const Heads& x) {
    Heads gradient = x;
    gradient.tensor = make.empty(x.tensor.shape(), key.dtype);
    return gradient;
  };
  Heads d_o = f.o;
  d_o.tensor = make.normal(f.o.tensor.shape(), key.dtype);
  return FlashBackward{
      .dims = f.dims,
      .q = f.q,
      .k = f.k,
      .v = f.v,
      .o = f.o,
      .d_o = d_o,
      .log_sum = f.log_sum,
      .slopes = f.slopes,
      .dq = gradient_of(f.q),
      .dk = gradient_of(f.k),
      .dv = gradient_of(f.v),
      .scale = f.scale,
      .visibility = f.visibility,
      .cap = f.cap,
      .sinks = f.sinks,
      .dsinks = f.sinks.defined() ? make.normal({f.dims.heads}, kStatistic) : Tensor(),
      .label = kCase};
}

Rotary op_case(Operands& make, const OpKey& key, Of<Rotary>) {
  const AttentionDims d = dims_of_rows(key);
  const bool is_scaled = (key.variant & kScaledRotary) != 0;
  return Rotary{.dims = d,
                .x = heads_of(make.normal(shape_of(d), key.dtype), d, d.heads),
                .frequencies =
                    is_scaled ? make.normal({d.head_dim / 2}, DType::kFloat32, 0.1, 0.3) : Tensor(),
                .neighbours = (key.variant & kAdjacentPairs) != 0,
                .label = kCase};
}

HeadNormForward op_case(Operands& make, const OpKey& key, Of<HeadNormForward>) {
  const AttentionDims d = dims_of_rows(key);
  return HeadNormForward{.kind = NormKind::kRmsNorm,
                         .dims = d,
                         .x = heads_of(make.normal(shape_of(d), key.dtype), d, d.heads),
                         .gain = make.normal({d.head_dim}, key.dtype, 0.2, 1.0),
                         .raw = make.empty(shape_of(d), key.dtype),
                         .label = kCase};
}

HeadNormBackward op_case(Operands& make, const OpKey& key, Of<HeadNormBackward>) {
  const AttentionDims d = dims_of_rows(key);
  return HeadNormBackward{.kind = NormKind::kRmsNorm,
                          .dims = d,
                          .dx = heads_of(make.normal(shape_of(d), key.dtype), d, d.heads),
                          .gain = make.normal({d.head_dim}, key.dtype, 0.2, 1.0),
                          .raw = make.normal(shape_of(d), key.dtype, 2.0),
                          .dgain = make.normal({d.head_dim}, kStatistic),
                          .label = kCase};
}

SoftCapForward op_case(Operands& make, const OpKey& key, Of<SoftCapForward>) {
  const Tensor x = make.normal({key.dims[0]}, key.dtype, 5.0);
  return SoftCapForward{x, make.empty({key.dims[0]}, key.dtype), 0.5F, 3.0F, kCase};
}

SoftCapBackward op_case(Operands& make, const OpKey& key, Of<SoftCapBackward>) {
  const Shape flat{key.dims[0]};
  const Tensor x = make.normal(flat, key.dtype, 5.0), y = make.empty(flat, key.dtype);
  make.device().run(SoftCapForward{x, y, 0.5F, 3.0F, kCase});
  return SoftCapBackward{y, make.normal(flat, key.dtype), 0.5F, 3.0F, kCase};
}

PositionScale op_case(Operands& make, const OpKey& key, Of<PositionScale>) {
  const AttentionDims d = dims_of_rows(key);
  return PositionScale{d,    heads_of(make.normal(shape_of(d), key.dtype), d, d.heads), 0.1F, 4, 0,
                       kCase};
}

HeadSum op_case(Operands& make, const OpKey& key, Of<HeadSum>) {
  const AttentionDims d = dims_of_rows(key);
  return HeadSum{d, heads_of(make.normal(shape_of(d), key.dtype), d, d.heads),
                 heads_of(make.empty({d.seq, 1, d.head_dim}, key.dtype), d, 1), kCase};
}

}  // namespace tpsim

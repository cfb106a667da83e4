// The ops between the projections of attention: norms and rotary embedding of queries and keys,
// softmax of scores, and flash attention. See kernels/ops.h.
#pragma once

#include <cstdint>

#include "core/model/block_shape.h"
#include "core/program/label.h"
#include "kernels/tensor.h"

namespace tpsim {

// The keys that a causal query attends to: the last `window` keys, or the keys of its own chunk.
// 0 means no limit. Positions count from the first key.
struct Visibility {
  std::int64_t window = 0;
  std::int64_t chunk = 0;
  constexpr bool is_limited() const { return window > 0 || chunk > 0; }
  constexpr std::int64_t reach() const { return window > 0 ? window : chunk; }
  constexpr std::int64_t first_key(std::int64_t position) const {
    if (window > 0) return position < window ? 0 : position - window + 1;
    return chunk > 0 ? position / chunk * chunk : 0;
  }
};
// Returns the number of visible query-key pairs. The queries are the last `queries` positions of
// the keys.
double visible_pairs(std::int64_t queries, std::int64_t keys, const Visibility& visibility);

// Megatron's FusedScaleMaskSoftmax with a causal mask, and ALiBi. In place:
// p = softmax(scale * scores + slope * key position), later keys masked.
//
// scores [batch * heads, queries, keys]. The queries are the last positions of the keys: query q
// sees keys 0 .. q + keys - queries, limited by `visibility`. slopes [heads] fp32; undefined
// without ALiBi. sinks [heads]; undefined without sinks. A sink is an extra score per head in the
// sum of the softmax. Its probability is not stored.
struct SoftmaxForward {
  Tensor scores, slopes;
  std::int64_t heads = 1;
  float scale = 1.0F;
  Visibility visibility = {};
  Tensor sinks = {};
  Label label;
};
// Backward of SoftmaxForward. In place: dprobs, the gradient of the probabilities, becomes the
// gradient of the scores, before they were multiplied by `scale`. dsinks [heads] += the gradient of
// the sinks; undefined without sinks.
struct SoftmaxBackward {
  Tensor probs, dprobs;
  float scale = 1.0F;
  Visibility visibility = {};
  std::int64_t heads = 1;
  Tensor dsinks = {};
  Label label;
};

// A strided view of a tensor with one vector per token and head. Element (position s, sample b,
// head h, d) is at offset + s * position_stride + b * sample_stride + h * head_stride + d.
struct Heads {
  Tensor tensor;
  std::int64_t offset = 0;
  std::int64_t position_stride = 0;
  std::int64_t sample_stride = 0;
  std::int64_t head_stride = 0;

  std::int64_t first(std::int64_t s, std::int64_t b, std::int64_t h) const {
    return offset + s * position_stride + b * sample_stride + h * head_stride;
  }
};
struct AttentionDims {
  std::int64_t batch = 0;
  std::int64_t seq = 0;  // of the queries
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t keys = 0;       // 0: as many as queries
  std::int64_t value_dim = 0;  // width of values and outputs; 0: head_dim
};
inline std::int64_t value_width(const AttentionDims& dims) {
  return dims.value_dim > 0 ? dims.value_dim : dims.head_dim;
}
inline std::int64_t key_count(const AttentionDims& dims) {
  return dims.keys > 0 ? dims.keys : dims.seq;
}
// o = softmax(scale q k' + ALiBi, causal) v without storing the scores. log_sum [batch, heads, seq]
// fp32: log of the sum of exponentials. q, o and their gradients have `seq` positions; k, v and
// their gradients have key_count(dims). The queries are the last positions of the keys, as in
// SoftmaxForward. Query head h reads key head h / (heads / kv_heads). With cap > 0, scores become
// cap tanh(score / cap) before ALiBi is added.
struct FlashForward {
  AttentionDims dims;
  Heads q, k, v, o;
  Tensor log_sum, slopes;
  float scale = 1.0F;
  Visibility visibility = {};
  float cap = 0;
  Tensor sinks = {};  // as in SoftmaxForward
  Label label;
};
struct FlashBackward {
  AttentionDims dims;
  Heads q, k, v, o, d_o;
  Tensor log_sum, slopes;
  Heads dq, dk, dv;
  float scale = 1.0F;
  Visibility visibility = {};
  float cap = 0;
  Tensor sinks = {}, dsinks = {};  // dsinks +=
  Label label;
};
// Rotates the (d, d + n/2) pairs of the first n = dims.head_dim entries of every head, in place.
// The angle is position / theta^(2d/n), or position * frequencies[d] if `frequencies` is defined.
// `neighbours`: rotates pairs (2d, 2d + 1) instead. `inverse`: rotates back (backward). `magnitude`
// multiplies cosines and sines. The first row of x has position first_position.
struct Rotary {
  AttentionDims dims;  // heads of x in dims.heads
  Heads x;
  float theta = 10000.0F;
  bool inverse = false;
  std::int64_t first_position = 0;
  Tensor frequencies = {};  // [n/2] fp32, or undefined
  bool neighbours = false;
  float magnitude = 1;
  Label label;
};
// Norm over head_dim of every head, in place. A copy of x is written to `raw` [seq, batch, heads,
// head_dim]. gain [head_dim] or [heads, head_dim]; ones if undefined.
struct HeadNormForward {
  NormKind kind{};
  AttentionDims dims;  // heads of x in dims.heads
  Heads x;
  Tensor gain, raw;
  float epsilon = 1e-5F;
  float offset = 0;  // added to the gain
  Label label;
};
// In place: dx, the gradient of the norm's output, becomes the gradient of its input. dgain +=.
struct HeadNormBackward {
  NormKind kind{};
  AttentionDims dims;
  Heads dx;
  Tensor gain, raw, dgain;
  float epsilon = 1e-5F;
  float offset = 0;
  Label label;
};
// y = cap tanh(scale x / cap); y may be x.
struct SoftCapForward {
  Tensor x, y;
  float scale = 1.0F;
  float cap = 1.0F;
  Label label;
};
// In place: dy, the gradient of y, becomes the gradient of x.
struct SoftCapBackward {
  Tensor y, dy;
  float scale = 1.0F;
  float cap = 1.0F;
  Label label;
};
// Scales each position in place: x *= 1 + strength ln(1 + n), where n is (position + 1) / floor,
// rounded down. Backward is the same op.
struct PositionScale {
  AttentionDims dims;
  Heads x;
  float strength = 0;
  std::int64_t floor = 1;
  std::int64_t first_position = 0;
  Label label;
};
// y [seq, batch, head_dim] = sum over the heads of x.
struct HeadSum {
  AttentionDims dims;
  Heads x, y;  // y has one head
  Label label;
};

}  // namespace tpsim

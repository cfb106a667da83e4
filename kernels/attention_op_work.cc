#include "kernels/op_work.h"

namespace tpsim {
namespace {

// Returns the bytes of the visible scores. Masked scores are written (as 0) but not read.
double visible_bytes(const Tensor& scores, const Visibility& visibility) {
  if (visibility.is_limited()) {
    const std::int64_t queries = scores.shape()[1], keys = scores.shape()[2];
    return bytes_of(scores) * visible_pairs(queries, keys, visibility) /
           static_cast<double>(queries * keys);
  }
  const auto queries = static_cast<double>(scores.shape()[1]);
  const auto keys = static_cast<double>(scores.shape()[2]);
  return bytes_of(scores) * (1 - (queries - 1) / (2 * keys));
}

// Visible query-key pairs over all heads.
double causal_pairs(const AttentionDims& d, const Visibility& visibility) {
  return static_cast<double>(d.batch * d.heads) * visible_pairs(d.seq, key_count(d), visibility);
}

// Returns the AttentionVariant bits of an attention core except kAlibiBias.
template <class Core>
std::uint8_t core_variant(const Core& op, bool capped, bool sinks) {
  return static_cast<std::uint8_t>((op.visibility.chunk > 0 ? kChunked : 0) |
                                   (capped ? kCapped : 0) | (sinks ? kSinks : 0));
}

// Work of an in-place op on all heads. `flops` and `passes` (reads plus writes) are per element.
Work heads_work(const AttentionDims& d, const Heads& x, std::uint8_t variant, double flops,
                double passes) {
  const double elements = static_cast<double>(d.batch * d.seq * d.heads * d.head_dim);
  return work(x.tensor.dtype(), variant, {d.batch * d.seq, d.heads, d.head_dim}, flops * elements,
              passes * elements * static_cast<double>(size_of(x.tensor.dtype())));
}

// Work of flash attention: `matmuls` GEMMs over the visible pairs, and `passes` reads or writes of
// queries, keys, values and outputs.
template <class Flash>
Work flash_work(const Flash& op, int matmuls, int passes) {
  const AttentionDims& d = op.dims;
  require(d.kv_heads >= 1 && d.heads % d.kv_heads == 0, op.label, "kv_heads divides heads");
  const std::int64_t keys = key_count(d);
  require(keys >= d.seq, op.label, "every query is one of the keys");
  const DType dtype = op.q.tensor.dtype();
  const auto bytes_of_heads = [&](std::int64_t positions, std::int64_t heads) {
    return static_cast<double>(d.batch * positions * heads * d.head_dim * size_of(dtype));
  };
  const double q_bytes = bytes_of_heads(d.seq, d.heads);
  const double kv_bytes = bytes_of_heads(keys, d.kv_heads);
  // Values and outputs may have another width than queries and keys.
  const double share = 1 + static_cast<double>(value_width(d)) / static_cast<double>(d.head_dim);
  const double width = static_cast<double>(d.head_dim) * share / 2;
  const bool own_width = value_width(d) != d.head_dim;
  const bool more = op.visibility.is_limited() || own_width;
  const int variant =
      (op.slopes.defined() ? kAlibiBias : 0) | core_variant(op, op.cap > 0, op.sinks.defined());
  return work(dtype, static_cast<std::uint8_t>(variant),
              {d.batch, d.seq, d.heads, d.kv_heads, d.head_dim, keys > d.seq || more ? keys : 0,
               more ? (op.visibility.is_limited() ? op.visibility.reach() : keys) : 0,
               own_width ? value_width(d) : 0},
              2.0 * matmuls * causal_pairs(d, op.visibility) * width,
              passes * share * (q_bytes + kv_bytes));
}

}  // namespace

Work work_of(const SoftmaxForward& op) {
  const Shape& s = op.scores.shape();
  require(s.rank() == 3 && s[0] % op.heads == 0, op.label, "scores are [batch*heads, q, k]");
  require(s[2] >= s[1], op.label, "every query is one of the keys");
  require(!op.slopes.defined() || op.slopes.elements() == op.heads, op.label, "one slope per head");
  require(!op.sinks.defined() || op.sinks.elements() == op.heads, op.label, "one sink per head");
  const int variant =
      (op.slopes.defined() ? kAlibiBias : 0) | core_variant(op, false, op.sinks.defined());
  return work(op.scores.dtype(), static_cast<std::uint8_t>(variant),
              {s[0], s[1], s[2], op.visibility.reach()}, 6.0 * static_cast<double>(s.elements()),
              visible_bytes(op.scores, op.visibility) + bytes_of(op.scores));
}

Work work_of(const SoftmaxBackward& op) {
  const Shape& s = op.probs.shape();
  require(s == op.dprobs.shape() && s.rank() == 3 && s[2] >= s[1], op.label, "shapes");
  require(!op.dsinks.defined() || s[0] % op.heads == 0, op.label, "probs are [batch*heads, q, k]");
  return work(op.probs.dtype(), core_variant(op, false, op.dsinks.defined()),
              {s[0], s[1], s[2], op.visibility.reach()}, 5.0 * static_cast<double>(s.elements()),
              2 * visible_bytes(op.probs, op.visibility) + bytes_of(op.probs));
}

Work work_of(const FlashForward& op) { return flash_work(op, 2, 1); }

Work work_of(const FlashBackward& op) { return flash_work(op, 5, 2); }

Work work_of(const Rotary& op) {
  const AttentionDims& d = op.dims;
  require(d.head_dim % 2 == 0 && op.first_position >= 0, op.label, "head_dim is even");
  require(!op.frequencies.defined() || op.frequencies.elements() == d.head_dim / 2, op.label,
          "one frequency for a pair");
  const bool is_scaled = op.frequencies.defined() || op.magnitude != 1;
  return heads_work(d, op.x,
                    static_cast<std::uint8_t>((op.neighbours ? kAdjacentPairs : 0) |
                                              (is_scaled ? kScaledRotary : 0)),
                    3, 2);
}

Work work_of(const HeadNormForward& op) {
  const AttentionDims& d = op.dims;
  require(op.raw.elements() == d.batch * d.seq * d.heads * d.head_dim, op.label, "raw holds x");
  return heads_work(d, op.x, 0, 8, 3);
}

Work work_of(const HeadNormBackward& op) {
  const AttentionDims& d = op.dims;
  require(op.raw.elements() == d.batch * d.seq * d.heads * d.head_dim, op.label, "raw holds x");
  return heads_work(d, op.dx, 0, 12, 3);
}

Work work_of(const SoftCapForward& op) {
  require(op.x.elements() == op.y.elements() && op.cap > 0, op.label, "shapes, and a cap");
  return flat(op.x, 0, 8, bytes_of(op.x, op.y));
}

Work work_of(const SoftCapBackward& op) {
  require(op.y.elements() == op.dy.elements() && op.cap > 0, op.label, "shapes, and a cap");
  return flat(op.dy, 0, 5, bytes_of(op.y, op.dy, op.dy));
}

Work work_of(const PositionScale& op) { return heads_work(op.dims, op.x, 0, 1, 2); }

Work work_of(const HeadSum& op) { return heads_work(op.dims, op.x, 0, 1, 1); }

double visible_pairs(std::int64_t queries, std::int64_t keys, const Visibility& visibility) {
  // Visible pairs of a causal sequence of n positions.
  const auto pairs = [&](std::int64_t n) {
    const auto triangle = [](double side) { return side * (side + 1) / 2; };
    const auto all = static_cast<double>(n);
    if (visibility.window > 0 && n > visibility.window) {
      const auto w = static_cast<double>(visibility.window);
      return triangle(w) + (all - w) * w;
    }
    if (visibility.chunk > 0) {
      const std::int64_t whole = n / visibility.chunk;
      return static_cast<double>(whole) * triangle(static_cast<double>(visibility.chunk)) +
             triangle(static_cast<double>(n % visibility.chunk));
    }
    return triangle(all);
  };
  if (!visibility.is_limited()) {
    return static_cast<double>(queries) * static_cast<double>(2 * keys - queries + 1) / 2;
  }
  return pairs(keys) - pairs(keys - queries);
}

}  // namespace tpsim

#include "reference_model/parallel/qkv_layout.h"

namespace tpsim {
namespace {

Heads heads_at(const QkvLayout& layout, const Tensor& rows, std::int64_t offset,
               std::int64_t stride) {
  const std::int64_t width = rows.cols();
  return Heads{rows, offset, layout.batch * width, width, stride};
}

}  // namespace

std::int64_t value_width(const QkvLayout& layout) {
  return layout.value_dim > 0 ? layout.value_dim : layout.head_dim;
}

std::int64_t qkv_width(const QkvLayout& layout) {
  return layout.heads * layout.head_dim + key_value_width(layout);
}

std::int64_t key_value_width(const QkvLayout& layout) {
  return layout.kv_heads * (layout.head_dim + value_width(layout));
}

QkvView view_of(const QkvLayout& layout, const Tensor& qkv) {
  const std::int64_t d = layout.head_dim;
  const auto heads = [&](std::int64_t offset, std::int64_t stride) {
    return heads_at(layout, qkv, offset, stride);
  };
  if (layout.fused) return {heads(0, 3 * d), heads(d, 3 * d), heads(2 * d, 3 * d)};
  const std::int64_t q = layout.heads * d, kv = layout.kv_heads * d;
  return {heads(0, d), heads(q, d), heads(q + kv, value_width(layout))};
}

QkvView view_of_key_values(const QkvLayout& layout, const Tensor& key_values) {
  const std::int64_t d = layout.head_dim;
  const std::int64_t values = layout.fused ? d : layout.kv_heads * d;
  const std::int64_t stride = layout.fused ? 2 * d : d;
  const std::int64_t value_stride = layout.fused ? stride : value_width(layout);
  return {{},
          heads_at(layout, key_values, 0, stride),
          heads_at(layout, key_values, values, value_stride)};
}

std::int64_t key_value_pieces(const QkvLayout& layout) { return layout.fused ? layout.heads : 1; }

Matrix key_values_in(const QkvLayout& layout, const Tensor& qkv) {
  const std::int64_t d = layout.head_dim;
  Matrix pieces = matrix_of(qkv);
  pieces.cols = key_value_width(layout) / key_value_pieces(layout);
  pieces.offset = layout.fused ? d : layout.heads * d;
  pieces.inner_stride = 3 * d;
  return pieces;
}

Matrix packed_key_values(const QkvLayout& layout, const Tensor& key_values) {
  Matrix pieces = matrix_of(key_values);
  pieces.cols = key_value_width(layout) / key_value_pieces(layout);
  pieces.inner_stride = pieces.cols;
  return pieces;
}

}  // namespace tpsim

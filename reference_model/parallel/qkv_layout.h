// Layout of queries, keys and values in a row of the QKV projection's output, and in a row of keys
// and values only.
//
// BLOOM's fused matrix interleaves them by head ([head][q, k, v]), as Megatron's query_key_value
// does. The LLaMA family has three matrices with adjacent outputs ([q | k | v]). A row is a token:
// row = position * batch + sample.
#pragma once

#include "kernels/ops.h"

namespace tpsim {

struct QkvLayout {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool fused = false;          // interleaved by head
  std::int64_t value_dim = 0;  // width of a value head; 0: head_dim
};
std::int64_t value_width(const QkvLayout& layout);
std::int64_t qkv_width(const QkvLayout& layout);
std::int64_t key_value_width(const QkvLayout& layout);

struct QkvView {
  Heads q, k, v;
};
// Views into qkv [positions, batch, qkv_width].
QkvView view_of(const QkvLayout& layout, const Tensor& qkv);
// Views into key_values [positions, batch, key_value_width]; q is undefined.
QkvView view_of_key_values(const QkvLayout& layout, const Tensor& key_values);

// Views of the keys and values of all rows for CopyMatrices, as key_value_pieces() matrices: one
// for each head if fused, else one. key_values_in() addresses them inside qkv, packed_key_values()
// in a tensor without queries.
std::int64_t key_value_pieces(const QkvLayout& layout);
Matrix key_values_in(const QkvLayout& layout, const Tensor& qkv);
Matrix packed_key_values(const QkvLayout& layout, const Tensor& key_values);

}  // namespace tpsim

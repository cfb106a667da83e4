// Where queries, keys and values lie in a row of the projection's output, and in a row that holds
// keys and values alone.
//
// BLOOM keeps q, k, v of a head together ([head][q, k, v]); the LLaMA family has three matrices,
// whose outputs lie side by side ([q | k | v]). Rows are tokens: row = position * batch + sample.
#pragma once

#include "kernels/ops.h"

namespace tpsim {

struct QkvLayout {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool fused = false;          // head by head
  std::int64_t value_dim = 0;  // width of a value head; 0: head_dim
};
std::int64_t value_width(const QkvLayout& layout);
std::int64_t qkv_width(const QkvLayout& layout);
std::int64_t key_value_width(const QkvLayout& layout);

struct QkvView {
  Heads q, k, v;
};
// qkv [positions, batch, qkv_width].
QkvView view_of(const QkvLayout& layout, const Tensor& qkv);
// key_values [positions, batch, key_value_width]; q stays undefined.
QkvView view_of_key_values(const QkvLayout& layout, const Tensor& key_values);

// The keys and values of all rows as key_value_pieces(layout) matrices side by side, for
// CopyMatrices: inside qkv, and alone.
std::int64_t key_value_pieces(const QkvLayout& layout);
Matrix key_values_in(const QkvLayout& layout, const Tensor& qkv);
Matrix packed_key_values(const QkvLayout& layout, const Tensor& key_values);

}  // namespace tpsim

// The projections of multi-head latent attention (DeepSeek-AI 2024, section 2.1):
//
//   q       = q_b(norm(q_a(x)))               or q_proj(x) without a rank of its own
//   c, r    = kv_a(x)                         a latent, and a key part that all heads share
//   k, v    = kv_b(norm(c))                   of every head; a head's key is [k, rotated r]
//
// The down projections are whole on every rank and work outside the tensor-parallel region, so that
// what is gathered is the latents; the up projections are cut by heads.
#pragma once

#include <string>
#include <vector>

#include "reference_model/layers/attention_core.h"

namespace tpsim {

struct LatentSaved {
  // Normed latents, kept as mappings.h has it; kv with the shared key behind it. q is x without a
  // q_rank.
  Tensor q, kv;
  Tensor raw_q, raw_kv;  // latents before their norms
};

class LatentAttention {
 public:
  static void specify(SpecList& specs);
  LatentAttention(const RankContext& context, ParameterUnit& unit, const std::string& block);

  // q, k and v of this rank's heads side by side, rotated, from x [seq_share, batch, hidden].
  Tensor forward(const Tensor& x, LatentSaved& saved, const AttentionCore& core) const;
  // The gradient of x, whole. Consumes `saved`.
  Tensor backward(const Tensor& dqkv, const Tensor& x, LatentSaved saved,
                  const AttentionCore& core) const;

 private:
  struct Down {
    Parameter *weight = nullptr, *bias = nullptr, *norm = nullptr;
  };
  // Projects down and norms the first `rank` columns.
  Tensor down(const Tensor& x, const Down& by, std::int64_t rank, Tensor& raw) const;
  // Adds to dx, whose first contribution overwrites it.
  void down_backward(const Tensor& dlatent, const Tensor& x, const Down& by, const Tensor& raw,
                     const Tensor& dx, float beta) const;
  void up_keys_and_values(const Tensor& kv, const Tensor& qkv, const AttentionCore& core) const;
  Tensor keys_and_values_backward(const Tensor& kv, const Tensor& dqkv,
                                  const AttentionCore& core) const;
  Tensor queries_backward(const Tensor& dqkv, const LatentSaved& saved) const;
  void copy_heads(const Tensor& qkv, const Tensor& up, bool from_up) const;
  // Columns of queries and of keys in a row of qkv; heads of a tensor whose rows hold one latent.
  std::int64_t query_columns() const;
  Heads shared_key(const Tensor& kv) const;

  const RankContext& context_;
  const LatentShape& shape_;
  LocalSizes sizes_;
  Down q_down_, kv_down_;
  Parameter& q_up_;  // q_b, or q_proj
  Parameter& kv_up_;
};

}  // namespace tpsim

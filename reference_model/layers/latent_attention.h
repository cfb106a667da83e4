// The projections of multi-head latent attention (DeepSeek-AI 2024, section 2.1):
//
//   q       = q_b(norm(q_a(x)))               or q_proj(x) if q_rank is 0
//   c, r    = kv_a(x)                         a latent, and a key part shared by all heads
//   k, v    = kv_b(norm(c))                   for each head; a head's key is [k, rotated r]
//
// The down projections are replicated and run outside the tensor-parallel region, so that the
// all-gather moves latents. The up projections are column-parallel, by heads.
#pragma once

#include <string>

#include "reference_model/layers/attention_core.h"

namespace tpsim {

struct LatentSaved {
  // Latents after their norms, as returned by kept_input(). The columns of kv are the latent, then
  // the key part shared by all heads. q is x if q_rank is 0.
  Tensor q, kv;
  Tensor raw_q, raw_kv;  // latents before their norms
};

class LatentAttention {
 public:
  static void specify(SpecList& specs);
  LatentAttention(const RankContext& context, ParameterUnit& unit, const std::string& block);

  // From x [seq_share, batch, hidden], returns q, k and v of this rank's heads in adjacent columns,
  // after rotary embedding.
  Tensor forward(const Tensor& x, LatentSaved& saved, const AttentionCore& core) const;
  // Returns the gradient of x, summed over the tensor group.
  Tensor backward(const Tensor& dqkv, const Tensor& x, LatentSaved saved,
                  const AttentionCore& core) const;

 private:
  struct Down {
    Parameter *weight = nullptr, *bias = nullptr, *norm = nullptr;
  };
  // Applies a down projection, then the norm over the first `rank` columns. `raw` receives these
  // columns before the norm.
  Tensor down(const Tensor& x, const Down& by, std::int64_t rank, Tensor& raw) const;
  // Backward of down(): dx = beta dx + gradient of x. Accumulates the wgrads.
  void down_backward(const Tensor& dlatent, const Tensor& x, const Down& by, const Tensor& raw,
                     const Tensor& dx, float beta) const;
  void up_keys_and_values(const Tensor& kv, const Tensor& qkv, const AttentionCore& core) const;
  Tensor keys_and_values_backward(const Tensor& kv, const Tensor& dqkv,
                                  const AttentionCore& core) const;
  Tensor queries_backward(const Tensor& dqkv, const LatentSaved& saved) const;
  void copy_heads(const Tensor& qkv, const Tensor& up, bool from_up) const;
  // Number of query columns in a row of qkv.
  std::int64_t query_columns() const;
  // Returns a view of the key part that all heads share, inside kv, as one head.
  Heads shared_key(const Tensor& kv) const;

  const RankContext& context_;
  const LatentShape& shape_;
  LocalSizes sizes_;
  Down q_down_, kv_down_;
  Parameter& q_up_;  // q_b, or q_proj
  Parameter& kv_up_;
};

}  // namespace tpsim

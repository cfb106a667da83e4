// Self-attention of one block: q, k, v projection, causal core, output projection.
//
// The heads are cut over the tensor group. BLOOM keeps q, k, v of a head together ([head][q,k,v]
// rows, one matrix); the LLaMA family has three matrices, which lie side by side here. Either way a
// projection's output holds all three, and the core reads it through strides: nothing is copied.
// The core is unfused (scores, softmax, values: what BLOOM ran) or flash.
#pragma once

#include <string>
#include <vector>

#include "reference_model/parameters.h"

namespace tpsim {

struct AttentionSaved {
  Tensor x;                // input of the projection, [seq_share, batch, hidden]
  Tensor qkv;              // [seq, batch, (heads + 2 kv_heads) * head_dim], rotated
  Tensor probs;            // unfused: [batch * heads, seq, seq]; undefined while recomputed
  Tensor mask, dropped;    // with dropout: which probs were kept; what is left of them
  std::uint64_t seed = 0;  // of the dropout
  Tensor log_sum;          // flash: [batch, heads, seq] fp32
  Tensor context;          // [seq, batch, heads * head_dim]
};

class Attention {
 public:
  static void specify(const RankContext& context, const std::string& block,
                      std::vector<ParameterSpec>& specs);
  // Also uploads the ALiBi slopes of this rank's heads.
  Attention(const RankContext& context, ParameterUnit& unit, const std::string& block);

  // The output projection's partial sum over the tensor group, without its bias:
  // [seq, batch, hidden].
  // Dropout draws from saved.seed.
  Tensor forward(const Tensor& x, AttentionSaved& saved) const;
  // From the gradient of forward's result to the gradient of x inside the tensor-parallel region,
  // still a partial sum over the tensor group. Consumes `saved`.
  Tensor backward(const Tensor& dy, AttentionSaved saved) const;

  Parameter* output_bias() const { return output_bias_; }

 private:
  Tensor project_qkv(const Tensor& x) const;
  void rotate(const Tensor& qkv, bool inverse) const;
  void core_forward(AttentionSaved& saved) const;
  Tensor core_backward(const Tensor& dcontext, AttentionSaved& saved) const;
  Tensor unfused_probs(const Tensor& qkv) const;
  // saved.probs, and with dropout saved.dropped; the result is what multiplies the values.
  Tensor draw_probs(AttentionSaved& saved) const;
  void unfused_values(const Tensor& qkv, const Tensor& probs, const Tensor& out) const;
  void flash_forward(AttentionSaved& saved) const;
  Tensor unfused_backward(const Tensor& dcontext, AttentionSaved& saved) const;
  Tensor flash_backward(const Tensor& dcontext, AttentionSaved& saved) const;

  const RankContext& context_;
  LocalSizes sizes_;
  AttentionDims dims_;
  float scale_;
  std::vector<Parameter*> projections_;  // one fused matrix, or q, k, v
  std::vector<Parameter*> projection_biases_;
  Parameter& output_;
  Parameter* output_bias_;
  Tensor slopes_;  // [heads] fp32; undefined without ALiBi
};

// ALiBi slopes of all heads (Press et al. 2022): powers of 2^(-8/n) for the largest power of two n
// <= heads, then every second power of 2^(-4/n).
std::vector<float> alibi_slopes(std::int64_t heads);

}  // namespace tpsim

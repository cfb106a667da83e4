// Self-attention of one block: q, k, v projection, causal core, output projection.
//
// The heads are cut over the tensor group. BLOOM has one matrix for q, k and v, the LLaMA family
// has three, whose outputs lie side by side; the core reads either
// (reference_model/attention_core.h).
#pragma once

#include <string>
#include <vector>

#include "reference_model/attention_core.h"
#include "reference_model/parameters.h"

namespace tpsim {

struct AttentionSaved {
  Tensor x;  // input of the projection, [seq_share, batch, hidden]
  CoreSaved core;
};

class Attention {
 public:
  static void specify(const RankContext& context, const std::string& block,
                      std::vector<ParameterSpec>& specs);
  Attention(const RankContext& context, ParameterUnit& unit, const std::string& block);

  // The output projection's partial sum over the tensor group, without its bias:
  // [seq, batch, hidden].
  // Dropout draws from saved.core.seed.
  Tensor forward(const Tensor& x, AttentionSaved& saved) const;
  // From the gradient of forward's result to the gradient of x inside the tensor-parallel region,
  // still a partial sum over the tensor group. Consumes `saved`.
  Tensor backward(const Tensor& dy, AttentionSaved saved) const;

  Parameter* output_bias() const { return output_bias_; }

 private:
  Tensor project_qkv(const Tensor& x) const;

  const RankContext& context_;
  AttentionCore core_;
  std::vector<Parameter*> projections_;  // one fused matrix, or q, k, v
  std::vector<Parameter*> projection_biases_;
  Parameter& output_;
  Parameter* output_bias_;
};

}  // namespace tpsim

// Self-attention of one block: q, k, v projection, causal core, output projection.
//
// The heads are cut over the tensor group. BLOOM has one matrix for q, k and v, the LLaMA family
// has three, whose outputs lie side by side; the core reads either
// (reference_model/layers/attention_core.h). Latent attention projects by ways of its own
// (reference_model/layers/latent_attention.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reference_model/layers/attention_core.h"
#include "reference_model/layers/latent_attention.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct AttentionSaved {
  Tensor x;  // input of the projection, [seq_share, batch, hidden]
  LatentSaved latent;
  CoreSaved core;
  Tensor gate, gated;  // with AttentionShape::output_gate
};

class ParallelAttention {
 public:
  static void specify(SpecList& specs);
  ParallelAttention(const RankContext& context, ParameterUnit& unit, const std::string& block);

  // The output projection's partial sum over the tensor group, without its bias:
  // [seq, batch, hidden].
  // Dropout draws from saved.core.seed.
  Tensor forward(const Tensor& x, AttentionSaved& saved) const;
  // From the gradient of forward's result to that of x, outside the tensor-parallel region.
  // Consumes `saved`.
  Tensor backward(const Tensor& dy, AttentionSaved saved) const;

  Parameter* output_bias() const { return output_bias_; }

 private:
  Tensor project_qkv(const Tensor& x) const;
  void add_biases(const Tensor& qkv) const;
  void bias_gradients(const Tensor& dqkv) const;
  Tensor core_backward(const Tensor& dy, AttentionSaved& saved) const;
  // What the output projection multiplies: the core's result, times the gate where there is one.
  Tensor gated_output(AttentionSaved& saved) const;
  Tensor gate_backward(Tensor dgated) const;
  void add_gate_gradient(const Tensor& x, const Tensor& dx, const Tensor& dgate) const;

  const RankContext& context_;
  AttentionCore core_;
  std::optional<LatentAttention> latent_;  // in place of the projections
  std::vector<Parameter*> projections_;    // one fused matrix, or q, k, v
  std::vector<Parameter*> projection_biases_;
  Parameter* gate_;  // null without
  Parameter& output_;
  Parameter* output_bias_;
};

}  // namespace tpsim

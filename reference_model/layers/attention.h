// Megatron's ParallelAttention: QKV projection (ColumnParallelLinear), causal core
// (reference_model/layers/attention_core.h), output projection (RowParallelLinear).
//
// A tensor-parallel rank has heads / tp heads. BLOOM has one fused matrix for q, k and v; the LLaMA
// family has three, whose outputs are adjacent columns of one tensor. The core reads both layouts.
// Latent attention replaces the QKV projection (reference_model/layers/latent_attention.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reference_model/layers/adapters.h"
#include "reference_model/layers/attention_core.h"
#include "reference_model/layers/latent_attention.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct AttentionSaved {
  Tensor x;  // input of the projection, [seq_share, batch, hidden]
  LatentSaved latent;
  CoreSaved core;
  Tensor gate, gated;  // if AttentionShape::output_gate
  Tensor gathered;     // if ranks share key heads: gather_key_heads()
  AdapterSaved adapters;
};

class ParallelAttention {
 public:
  static void specify(SpecList& specs);
  ParallelAttention(const RankContext& context, ParameterUnit& unit, const std::string& block);

  // Returns this rank's partial sum of the output projection, [seq, batch, hidden], without bias.
  // saved.core.seed seeds the dropout of probabilities.
  Tensor forward(const Tensor& x, AttentionSaved& saved) const;
  // Returns the gradient of x, summed over the tensor group, from the gradient of forward's result.
  Tensor backward(const Tensor& dy, AttentionSaved saved) const;

  Parameter* output_bias() const { return output_bias_; }

 private:
  Tensor project_qkv(const Tensor& x, AttentionSaved& saved) const;
  std::int64_t copied_columns() const;
  void note_copied_columns(const Tensor& x, bool backward) const;
  void add_biases(const Tensor& qkv) const;
  void bias_gradients(const Tensor& dqkv) const;
  Tensor core_backward(const Tensor& dy, AttentionSaved& saved) const;
  // Returns the input of the output projection: the core's result, times the gate if there is one.
  Tensor gated_output(AttentionSaved& saved) const;
  Tensor gate_backward(Tensor dgated) const;
  void add_gate_gradient(const Tensor& x, const Tensor& dx, const Tensor& dgate) const;

  const RankContext& context_;
  AttentionCore core_;
  std::optional<LatentAttention> latent_;  // replaces the projections
  std::vector<Parameter*> projections_;    // one fused matrix, or q, k, v
  std::vector<Parameter*> projection_biases_;
  Parameter* gate_;  // null without output gate
  Parameter& output_;
  Parameter* output_bias_;
};

}  // namespace tpsim

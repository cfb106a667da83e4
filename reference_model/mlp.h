// The feed-forward part of a block: up projection (column-parallel), GELU or SwiGLU, down
// projection (row-parallel). SwiGLU's gate and up matrices write adjacent halves of one tensor.
#pragma once

#include <string>
#include <vector>

#include "reference_model/parameters.h"

namespace tpsim {

struct MlpSaved {
  Tensor x;       // [seq_share, batch, hidden]
  Tensor up;      // before the activation: [seq, batch, ffn], twice as wide for SwiGLU
  Tensor active;  // after it: [seq, batch, ffn]
};

class Mlp {
 public:
  static void specify(const RankContext& context, const std::string& block,
                      std::vector<ParameterSpec>& specs);
  Mlp(const RankContext& context, ParameterUnit& unit, const std::string& block);

  // The down projection's partial sum over the tensor group, without its bias.
  Tensor forward(const Tensor& x, MlpSaved& saved) const;
  // Gradient of x inside the tensor-parallel region, a partial sum. Consumes `saved`.
  Tensor backward(const Tensor& dy, MlpSaved saved) const;

  Parameter* output_bias() const { return down_bias_; }

 private:
  bool gated() const { return context_.model.mlp == MlpKind::kSwiglu; }

  const RankContext& context_;
  std::vector<Parameter*> up_;  // one matrix, or gate and up
  Parameter* up_bias_;
  Parameter& down_;
  Parameter* down_bias_;
};

}  // namespace tpsim

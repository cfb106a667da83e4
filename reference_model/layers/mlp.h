// The feed-forward part of a block: up projection (column-parallel), GELU or SwiGLU, down
// projection (row-parallel). SwiGLU's gate and up matrices write adjacent halves of one tensor.
#pragma once

#include <string>
#include <vector>

#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct MlpSaved {
  Tensor x;       // [seq_share, batch, hidden]
  Tensor up;      // before the activation: [seq, batch, ffn], twice as wide for SwiGLU
  Tensor active;  // after it: [seq, batch, ffn]
};

// What its matrices are called behind the block's prefix, and how wide they are.
struct MlpShape {
  std::vector<std::string> up;  // one matrix, or gate and up
  std::string down;
  std::int64_t width = 0;  // of one branch, over all ranks
  bool bias = false;
};
MlpShape dense_mlp(const ModelSpec& model);
MlpShape shared_expert(const ModelSpec& model);

// A feed-forward network between its projections, whose first one's bias a plain activation adds
// where it is defined; and from the gradient behind it to that before.
void activate(const RankContext& context, const Tensor& up, const Tensor& bias,
              const Tensor& active, const Label& label);
void activate_backward(const RankContext& context, const Tensor& dactive, const Tensor& up,
                       const Tensor& bias, const Tensor& dup, const Label& label);

class ParallelMLP {
 public:
  static void specify(const MlpShape& shape, SpecList& specs);
  ParallelMLP(const RankContext& context, ParameterUnit& unit, const MlpShape& shape,
              const std::string& block);

  // The down projection's partial sum over the tensor group, without its bias.
  Tensor forward(const Tensor& x, MlpSaved& saved) const;
  // Gradient of x, from that of the result inside the tensor-parallel region. Consumes `saved`.
  Tensor backward(const Tensor& dy, MlpSaved saved) const;

  Parameter* output_bias() const { return down_bias_; }

 private:
  bool gated() const { return is_gated(context_.model.mlp); }
  const Label& activation_label() const;
  // Gated branches have their biases added where they lie; a plain one's is fused with what
  // follows.
  Tensor fused_bias() const;
  void add_up_bias(const Tensor& up) const;
  void up_bias_gradients(const Tensor& dup) const;
  Tensor up_gradient(const Tensor& dy, MlpSaved& saved) const;

  const RankContext& context_;
  std::vector<Parameter*> up_;  // one matrix, or gate and up
  std::vector<Parameter*> up_biases_;
  Parameter& down_;
  Parameter* down_bias_;
};

}  // namespace tpsim

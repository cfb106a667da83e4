// Megatron's ParallelMLP: up projection (ColumnParallelLinear), activation (fused with the bias as
// in bias_gelu), down projection (RowParallelLinear).
//
// A gated MLP has two matrices, gate and up, which write adjacent halves of one tensor.
#pragma once

#include <string>
#include <vector>

#include "reference_model/layers/adapters.h"
#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct MlpSaved {
  Tensor x;       // [seq_share, batch, hidden]
  Tensor up;      // input of the activation: [seq, batch, ffn / tp], twice as wide if gated
  Tensor active;  // output of the activation: [seq, batch, ffn / tp]
  AdapterSaved adapters;
};

// Matrix names, without the block's prefix, and width of an MLP.
struct MlpShape {
  std::vector<std::string> up;  // one matrix, or gate and up
  std::string down;
  std::int64_t width = 0;  // FFN width over all ranks; of gate and up each
  bool bias = false;
};
MlpShape dense_mlp(const ModelSpec& model);
MlpShape shared_expert(const ModelSpec& model);

// The activation function between the projections. A plain activation also adds `bias` if defined.
// A gated activation ignores `bias`. activate_backward() writes dup, the gradient of `up`.
void activate(const RankContext& context, const Tensor& up, const Tensor& bias,
              const Tensor& active, const Label& label);
void activate_backward(const RankContext& context, const Tensor& dactive, const Tensor& up,
                       const Tensor& bias, const Tensor& dup, const Label& label);

class ParallelMLP {
 public:
  static void specify(const MlpShape& shape, SpecList& specs);
  ParallelMLP(const RankContext& context, ParameterUnit& unit, const MlpShape& shape,
              const std::string& block);

  // Returns this rank's partial sum of the down projection, [seq, batch, hidden], without bias.
  Tensor forward(const Tensor& x, MlpSaved& saved) const;
  // Returns the gradient of x, summed over the tensor group, from the gradient of forward's result.
  Tensor backward(const Tensor& dy, MlpSaved saved) const;

  Parameter* output_bias() const { return down_bias_; }

 private:
  bool gated() const { return is_gated(context_.model.mlp); }
  const Label& activation_label() const;
  // Returns the bias that the activation op adds. Undefined for a gated MLP, whose biases
  // add_up_bias() adds.
  Tensor fused_bias() const;
  void add_up_bias(const Tensor& up) const;
  void up_bias_gradients(const Tensor& dup) const;
  // Backward of down projection and activation: returns the gradient of `up`.
  Tensor up_gradient(const Tensor& dy, MlpSaved& saved) const;

  const RankContext& context_;
  std::vector<Parameter*> up_;  // one matrix, or gate and up
  std::vector<Parameter*> up_biases_;
  Parameter& down_;
  Parameter* down_bias_;
};

}  // namespace tpsim

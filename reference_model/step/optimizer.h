// The end of a step: reduces gradients over the groups, clips them by the global norm (Megatron's
// clip_grad_norm_fp32), and updates this rank's weights (with ZeRO only its share) with AdamW.
// Corresponds to Megatron's Float16OptimizerWithFloat16Params and DistributedOptimizer.
//
// If the optimizer is offloaded, its state is in host memory: gradients are copied to the host, the
// CPU updates the weights, and the weights are copied back.
#pragma once

#include <vector>

#include "reference_model/parallel/parameters.h"

namespace tpsim {

struct OptimizerSettings {
  double rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double clip_norm = 1.0;  // maximum global gradient norm; 0 switches clipping off
};

struct OptimizerState {
  Tensor master;  // fp32 weights; in fp32 training the weights themselves
  Tensor momentum;
  Tensor variance;
  // Copies of gradients and weights in host memory if the optimizer is offloaded, else undefined.
  Tensor host_gradients, host_weights;
};

class Optimizer {
 public:
  Optimizer(const RankContext& context, ParameterStore& store, OptimizerSettings settings);
  // Allocates the state from the store's weights.
  void materialize();

  // Reduces the gradients of the step: replicated tensors over the tensor group, tied word
  // embeddings over first and last stage, and with ZeRO 0 and 1 all gradients over the data group.
  // ZeRO 2 and 3 reduce over the data group in backward. Waits for reductions in flight.
  void reduce_gradients();
  // Updates the weights; `step` counts from 1. Returns the global gradient norm before clipping; 0
  // if clipping is switched off.
  double update(std::int64_t step);

  // One state for each unit, in the order of the store.
  std::vector<OptimizerState>& states() { return states_; }

 private:
  void reduce_tied_table(ParameterUnit& unit);
  bool counts_in_norm(const ParameterUnit& unit) const;
  bool shares_differ() const;
  double global_norm();
  struct UpdateStep {
    std::int64_t step;
    double scale;  // factor of the gradients, from clipping
  };
  std::vector<Tensor> optimizer_gradients();
  bool is_offloaded() const { return context_.plan.offload == Offload::kOptimizer; }
  void update_unit(ParameterUnit& unit, OptimizerState& state, const Tensor& gradients,
                   const UpdateStep& update);
  struct UpdateOperands {
    Tensor gradients, weights;
    Label label;
  };
  void update_share(ParameterUnit& unit, OptimizerState& state, const UpdateOperands& with,
                    const UpdateStep& update);
  DType gradient_share_dtype() const;
  void gather_weights(ParameterUnit& unit);

  const RankContext& context_;
  ParameterStore& store_;
  OptimizerSettings settings_;
  std::vector<OptimizerState> states_;
};

}  // namespace tpsim

// The end of a step: gradients are completed over the groups, clipped by their global norm, and
// AdamW updates the weights that this rank owns (all of them, or its ZeRO share). With the
// optimizer offloaded its state lies in the host's memory, where the update works on copies of the
// gradients and writes weights that are copied back.
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
  double clip_norm = 1.0;  // of the global gradient norm; 0 switches clipping off
};

struct OptimizerState {
  Tensor master;  // fp32 weights; the weights themselves in fp32 training
  Tensor momentum;
  Tensor variance;
  // In the host's memory with the optimizer offloaded, else undefined: the gradients as they came
  // down, and the weights as they go up.
  Tensor host_gradients, host_weights;
};

class Optimizer {
 public:
  Optimizer(const RankContext& context, ParameterStore& store, OptimizerSettings settings);
  // Allocates the state from the store's weights.
  void materialize();

  // Completes the gradients of the step over the groups: sequence-parallel partial sums, data
  // parallel reduction (stages 0 and 1; stages 2 and 3 did it in backward), tied word embeddings.
  // What has begun beside backward is waited for.
  void reduce_gradients();
  // Updates the weights; `step` counts from 1. The global norm before clipping.
  double update(std::int64_t step);

  // By unit, in the store's order.
  std::vector<OptimizerState>& states() { return states_; }

 private:
  void reduce_tied_table(ParameterUnit& unit);
  bool counts_in_norm(const ParameterUnit& unit) const;
  bool shares_differ() const;
  double global_norm();
  struct UpdateStep {
    std::int64_t step;
    double scale;  // of the gradients
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

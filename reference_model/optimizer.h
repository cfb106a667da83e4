// The end of a step: gradients are completed over the groups, clipped by their global norm, and
// AdamW updates the weights that this rank owns (all of them, or its ZeRO share).
#pragma once

#include <vector>

#include "reference_model/parameters.h"

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
};

class Optimizer {
 public:
  Optimizer(const RankContext& context, ParameterStore& store, OptimizerSettings settings);
  // Allocates the state from the store's weights.
  void materialize();

  // Completes the gradients of the step over the groups: sequence-parallel partial sums, data
  // parallel reduction (stages 0 and 1; stages 2 and 3 did it in backward), tied word table.
  void reduce_gradients();
  // Updates the weights; `step` counts from 1. The global norm before clipping.
  double update(std::int64_t step);

  void set_rate(double rate) { settings_.rate = rate; }
  // By unit, in the store's order.
  std::vector<OptimizerState>& states() { return states_; }

 private:
  void reduce_tied_table(ParameterUnit& unit);
  void reduce_over_data_parallel(ParameterUnit& unit);
  double global_norm();
  struct UpdateStep {
    std::int64_t step;
    double scale;  // of the gradients
  };
  std::vector<Tensor> optimizer_gradients();
  void update_unit(ParameterUnit& unit, OptimizerState& state, const Tensor& gradients,
                   const UpdateStep& update);
  void gather_weights(ParameterUnit& unit);

  const RankContext& context_;
  ParameterStore& store_;
  OptimizerSettings settings_;
  std::vector<OptimizerState> states_;
};

}  // namespace tpsim

// The end of a step: reduces gradients over the groups, clips them by the global norm (Megatron's
// clip_grad_norm_fp32), and updates this rank's weights (with ZeRO only its share) with the
// optimizer of TrainingOptions. Corresponds to Megatron's Float16OptimizerWithFloat16Params,
// DistributedOptimizer and LayerWiseDistributedOptimizer.
//
// If the optimizer is offloaded, its state is in host memory: gradients are copied to the host, the
// CPU updates the weights, and the weights are copied back.
#pragma once

#include <vector>

#include "reference_model/step/optimizer_state.h"

namespace tpsim {

struct OptimizerSettings {
  double rate = 1e-4;
  double beta1 = 0.9;  // of AdamW
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double clip_norm = 1.0;  // maximum global gradient norm; 0 switches clipping off
  double momentum = 0.95;  // of Muon
};

class Optimizer {
 public:
  Optimizer(const RankContext& context, ParameterStore& store, OptimizerSettings settings);
  // Allocates the state from the store's weights. materialize_unit() does so for the next unit.
  void materialize();
  void materialize_unit();

  // Reduces the gradients of the step: replicated tensors over the tensor group, tied word
  // embeddings over first and last stage, and with ZeRO 0 and 1 all gradients over the data group.
  // ZeRO 2 and 3 reduce over the data group in backward. Waits for reductions in flight.
  void reduce_gradients();
  // Updates the weights; `step` counts from 1. Returns the global gradient norm before clipping; 0
  // if clipping is switched off.
  double update(std::int64_t step);

  // The parts of update(), for the trace: all units are updated, then all weights are gathered.
  struct UpdateStep {
    std::int64_t step = 0;
    double norm = 0;                     // of the gradients
    double scale = 1;                    // factor of the gradients, from clipping
    std::vector<Tensor> gradients = {};  // this rank's share of each unit
  };
  UpdateStep begin_update(std::int64_t step);
  void update_unit(std::size_t index, const UpdateStep& update);
  // With ZeRO 1 and 2, gathers the weights of a unit or broadcasts them from their owners.
  void gather_weights(ParameterUnit& unit);

  // One state for each unit, in the order of the store.
  std::vector<OptimizerState>& states() { return states_; }

 private:
  void reduce_tied_table(ParameterUnit& unit);
  bool counts_in_norm(const ParameterUnit& unit) const;
  bool shares_differ() const;
  double global_norm();
  std::vector<Tensor> optimizer_gradients();
  bool is_offloaded() const { return offloads_optimizer(context_.plan); }
  StateValues allocated(const ParameterUnit& unit, StateTensor tensor);
  StateValues master_of(const ParameterUnit& unit);
  struct UpdateOperands {
    Tensor gradients, weights;
    Label label;
  };
  void update_share(ParameterUnit& unit, OptimizerState& state, const UpdateOperands& with,
                    const UpdateStep& update);
  DType gradient_share_dtype() const;

  const RankContext& context_;
  ParameterStore& store_;
  OptimizerSettings settings_;
  std::vector<OptimizerState> states_;
};

}  // namespace tpsim

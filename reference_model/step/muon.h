// Muon: momentum whose matrices are orthogonalized by Newton-Schulz iterations (Jordan et al. 2024,
// kellerjordan.github.io/posts/muon). The formulas are those of torch.optim.Muon (pytorch 098e03f)
// with adjust_lr_fn="match_rms_adamw" (Liu et al. 2025, arXiv 2502.16982), in this order for a
// matrix W [R, C] with gradient G:
//
//   M = mu M + (1 - mu) G               momentum
//   X = (1 - mu) G + mu M               Nesterov's look-ahead
//   X = X / max(|X|, 1e-7)              Frobenius norm
//   five times, if R <= C:  A = X X',  X = a X + (b A + c A A) X; else with A = X' X from the right
//   W = (1 - rate decay) W - 0.2 sqrt(max(R, C)) rate X
//
// GEMMs have the plan's dtype, sums and state are fp32. Ranks that shard a matrix:
//   tensor parallel   TrainingOptions::muon_tp_mode (newton_schulz_tp of Emerging-Optimizers)
//   ZeRO 1            the owner of a matrix has all of it (reference_model/parallel/owners.h)
//   ZeRO 2 and 3      X is all-gathered in fp32; a rank orthogonalizes the matrices of its share
#pragma once

#include "reference_model/step/optimizer_state.h"

namespace tpsim {

struct MuonSettings {
  double rate = 0;
  double momentum = 0.95;
  double weight_decay = 0;
};

// The operands of one unit's update. `gradients` and `weights` are this rank's share of the unit.
struct MuonOperands {
  Tensor gradients, weights;
  double gradient_scale = 1;
};

class Muon {
 public:
  Muon(const RankContext& context, ParameterStore& store, const MuonSettings& settings)
      : context_(context), store_(store), settings_(settings) {}

  // Updates the unit's matrices that this rank owns, or its share of them. Collective over the data
  // group with ZeRO 2 and 3, and over the tensor group if matrices are sharded.
  void update(const ParameterUnit& unit, const OptimizerState& state, const MuonOperands& with);

 private:
  // Updates the momentum of a range and computes X of this range.
  void look_ahead(const UpdatedRange& range, const OptimizerState& state, const Tensor& gradients,
                  double gradient_scale, const Tensor& x);
  // Returns X of the whole unit, gathered from the shares of the data group.
  Tensor gathered(const ParameterUnit& unit, const OptimizerState& state, const MuonOperands& with);
  Tensor orthogonalized(const ParameterUnit& unit, const Parameter& p, const Tensor& x);
  Tensor in_duplicate(const ParameterUnit& unit, const Parameter& p, const Tensor& x);
  // Iterates on x, [rows, cols] fp32. With a group, x is a shard of a matrix of which the group has
  // all `Sharding`s.
  Tensor iterated(const Tensor& x, Communicator* group, Sharding sharding);
  bool is_sharded(const ParameterUnit& unit, const Parameter& p) const;
  double scale_of(const ParameterUnit& unit, const Parameter& p) const;
  Tensor allocate(const Shape& shape, DType dtype, const char* label) const;

  const RankContext& context_;
  ParameterStore& store_;
  MuonSettings settings_;
};

}  // namespace tpsim

// Delayed scaling for Precision::kFp8, as Transformer Engine's DelayedScaling: the scale of each
// operand of a linear layer follows from an amax history of previous steps.
//
// Each step adds one entry to the history, independent of the number of micro-batches. All GEMMs of
// a step quantize a tensor with the same scale. In the first step the GEMMs compute the scales
// (OperandRounding::finds_scales). Saved states do not contain the histories.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/tensor.h"
#include "reference_model/parallel/rank_context.h"

namespace tpsim {

class ParameterStore;

// Length of a history: the default amax_history_len of Transformer Engine's recipe.
inline constexpr std::size_t kScaleHistory = 1024;

class DelayedScales {
 public:
  // Sets Parameter::scales of every matrix that a GEMM reads.
  void attach(Device& device, ParameterStore& store);
  // Whether at least one step has ended. The scales then come from the history.
  bool has_history() const { return steps_ > 0; }
  // Adds the amax values of a step to the histories, as maximum over the ranks of a stage, and
  // computes the scales of the next step. Collective.
  void end_step(const RankContext& context);

 private:
  Tensor scales_;                            // [operands, kScaleStride] fp32
  std::vector<std::vector<float>> history_;  // by operand; empty if no GEMM has read the operand
  std::size_t steps_ = 0;
};

// Returns the scale of an operand for the next step: maximum of the history over
// `greatest_of_format`. Values that are not finite are ignored; returns `before` if no positive
// value is left.
float delayed_scale(const std::vector<float>& history, float greatest_of_format, float before);

}  // namespace tpsim

// Scales of Precision::kFp8: of every tensor that a linear layer multiplies, from its greatest
// magnitudes of steps before, as Transformer Engine's DelayedScaling keeps them: so many values,
// the greatest of which becomes the format's.
//
// A step is one entry, whatever its micro-batches, so that a tensor that is rounded for several
// products is rounded alike. Until a step has ended, products find the scales themselves
// (OperandRounding::finds_scales). Histories belong to a run: states on disk do not hold them.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/tensor.h"
#include "reference_model/parallel/rank_context.h"

namespace tpsim {

class ParameterStore;

// Entries of a history: amax_history_len of Transformer Engine's recipe where nobody sets it.
inline constexpr std::size_t kScaleHistory = 1024;

class DelayedScales {
 public:
  // Gives every matrix that is multiplied its Parameter::scales.
  void attach(Device& device, ParameterStore& store);
  // Whether a step has ended.
  bool has_history() const { return steps_ > 0; }
  // The magnitudes of a step join the histories, and the next step's scales follow. Ranks of a
  // stage agree on the greatest: all of them call this.
  void end_step(const RankContext& context);

 private:
  Tensor scales_;                            // [operands, 2] fp32
  std::vector<std::vector<float>> history_;  // of each operand; empty where none was multiplied
  std::size_t steps_ = 0;
};

// The scale of an operand in the next step: what a unit of its format stands for. Magnitudes that
// are zero or not finite say nothing; where all do, the scale stays `before`.
float delayed_scale(const std::vector<float>& history, float greatest_of_format, float before);

}  // namespace tpsim

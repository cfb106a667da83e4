// A part around the blocks, planned on the first stage (core/model/planned_op.h): an encoder of
// pictures or sound, or tables of each layer. Every tensor-parallel rank has all of it.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "reference_model/layers/planned_ops.h"

namespace tpsim {

struct OuterPartSaved {
  std::vector<PlannedSaved> layers;
  PlannedSaved ops;
};

class PlannedPart {
 public:
  static void specify(const OuterPart& part, SpecList& specs);
  // `part` outlives this.
  PlannedPart(const RankContext& context, ParameterUnit& unit, const OuterPart& part);

  // `x`: the sequence's activations, for parts without items of their own. No layer is recomputed.
  void forward(const Tensor& x, OuterPartSaved& saved) const;
  void backward(OuterPartSaved saved) const;

 private:
  const RankContext& context_;
  const OuterPart& part_;
  std::deque<PlannedOps> layers_;
  PlannedOps ops_;
};

}  // namespace tpsim

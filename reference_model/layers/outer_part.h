// A part outside the blocks that runs on the first stage, such as a vision or audio encoder, or
// embedding tables of each layer. It is priced but not executed (core/model/planned_op.h). Its
// weights are replicated on every tensor-parallel rank.
#pragma once

#include <deque>
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
  // `part` must outlive this object.
  PlannedPart(const RankContext& context, ParameterUnit& unit, const OuterPart& part);

  // `x`: activations of the token sequence. Only parts whose input is not images or audio read
  // them. Layers are not recomputed in backward.
  void forward(const Tensor& x, OuterPartSaved& saved) const;
  void backward(OuterPartSaved saved) const;

 private:
  const RankContext& context_;
  const OuterPart& part_;
  std::deque<PlannedOps> layers_;
  PlannedOps ops_;
};

}  // namespace tpsim

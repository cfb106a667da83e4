// Time that the end of a step adds to the pipeline: work of each stage between its last task and
// the first forward of the next step.
//
// The program of a stage: in the last backward, the reduction of a layer's gradients, or its
// offloaded update, starts after the layer; in the first forward, a layer waits for its weights.
#pragma once

#include <vector>

#include "sim/layers/layer_pricer.h"
#include "sim/schedule/stage_costs.h"

namespace tpsim {

struct StageEnd {
  // Up to the global norm, where all ranks synchronize. local: reduction of sequence-parallel
  // gradients, and sums of squares.
  Seconds tied, reduction, local;
  Seconds update, gather;

  Seconds before_norm() const { return tied + reduction + local; }
  Seconds after_norm() const { return update + gather; }
};

// Returns the ends of all stages.
std::vector<StageEnd> stage_ends(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
                                 const PipelineTimes& times);

}  // namespace tpsim

// ZeRO 1 with an optimizer that needs whole matrices: every tensor of a block has one owner
// (reference_model/parallel/owners.h). A trace contains the work of all owners of one block.
#pragma once

#include "core/scenario/scenario.h"
#include "sim/trace/trace.h"

namespace tpsim {

// Work and state of the busiest owner per block, relative to those of all owners of a block. With
// more ranks than tensors both exceed 1 / ranks, because no tensor is split.
struct OwnerShare {
  double time = 1;
  double bytes = 1;  // of the rank with the most elements
};

// Returns the share of a stage with equal blocks like the traced one. `of_experts`: tensors of
// experts, whose owners are the ranks with the same experts.
OwnerShare owner_share(const Scenario& scenario, const Plan& plan, const StepEndTrace& trace,
                       bool of_experts);

// Scales the optimizer state in the trace to that of one owner, and sets OwnedEvents::time.
void share_among_owners(const Scenario& scenario, const Plan& plan, StepEndTrace& trace);

// Returns the factor of the time of each event, 1 except for the updates of owners.
std::vector<double> owner_times(const StepEndTrace& trace);

}  // namespace tpsim

// The nodes of a plan's ranks on the scenario's cluster.
#pragma once

#include "core/plan/rank_layout.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Equal nodes are filled in order. Of nodes that differ, the arrangement that suits the plan is
// returned, or else the packed order. The cluster must have a GPU for each rank.
NodeMap node_map(const Scenario& scenario, const Plan& plan);

}  // namespace tpsim

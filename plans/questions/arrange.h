// Finds the fastest assignment of ranks to nodes with different numbers of GPUs or NICs.
#pragma once

#include <optional>

#include "core/base/result.h"
#include "core/plan/rank_packing.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Returns the arrangement of the plan's ranks with the shortest predicted step that was found:
// packings of blocks in several orders of nodes, then swaps of blocks while they help. Of equally
// fast arrangements, the one whose groups are on fewer nodes. Error if the plan is illegal.
Result<RankNodes> arranged(const Scenario& scenario, const Plan& plan);

// The step of a plan on as many GPUs in equal nodes.
struct EqualNodes {
  std::int64_t nodes = 0;
  std::int64_t gpus_per_node = 0;
  Seconds step;
};
// Returns the fewest equal nodes of whole hosts that have the plan's GPUs; nothing if the
// scenario's nodes are equal, or if no number of nodes divides the GPUs.
std::optional<EqualNodes> on_equal_nodes(const Scenario& scenario, const Plan& plan);

}  // namespace tpsim

// The hosts that a scheduler gave, in a scenario (--nodes).
#pragma once

#include <string>
#include <vector>

#include "app/scenario/named_scenario.h"
#include "app/scenario/scenario_request.h"
#include "core/base/result.h"

namespace tpsim::app {

// Reads the hosts of a request: a file, or its lines with ; between them, as in node[001-004,7].
Result<std::vector<std::string>> read_nodes(const std::string& file_or_list);

// Replaces the cluster's nodes by the hosts of `file`, if it has any. Ranks stated by the request
// hold for every plan, those of a plan file for its own layout.
Status add_allocation(const ScenarioRequest& request, const PlanFile& file, NamedScenario& named);

// Returns the number of stated ranks, else of GPUs of the allocation; 0 without allocation.
std::int64_t allocated_gpus(const NamedScenario& named);

// On nodes that differ, chooses where the ranks of the plan run, unless the scenario has their
// order. Error if the stated ranks are not as many as the plan's.
Status arrange_ranks(NamedScenario& named, const Plan& plan);

// Returns the allocation with the ranks of the plan.
Allocation allocated_ranks(const NamedScenario& named, const Plan& plan);
// Returns the host of each rank, one a line, as Slurm's SLURM_HOSTFILE. Error without --nodes.
Result<std::string> rank_file(const NamedScenario& named, const Plan& plan);

// A node of the allocation, and the plan's ranks on it.
struct UsedNode {
  std::string name;
  std::int64_t hosts = 0;
  NodeShape shape;
  std::vector<std::int64_t> ranks = {};  // ascending
};
std::vector<UsedNode> used_nodes(const NamedScenario& named, const Plan& plan);

}  // namespace tpsim::app

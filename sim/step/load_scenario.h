// Loads a scenario from names in the catalogue, paths, or a plan file.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_file.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Names in the catalogue, or paths. Empty profile or stack: the cluster's default. The cluster
// this-machine is derived from the profile (costs/machine_cluster.h).
struct ScenarioNames {
  std::string model = {};
  std::string cluster = {};
  std::string profile = {};
  std::string stack = {};
  PartValues parts = {};  // replace the stack's own values
  double node_gbps = 0;   // network bandwidth per node in Gbit/s; 0: the cluster's
};
// Returns the names in a plan file. The model is stored in the file, so its name may not be in the
// catalogue.
ScenarioNames names_of(const PlanFile& file);

Result<Scenario> load_scenario(const Catalogue& catalogue, const ScenarioNames& names);
// Loads the scenario with `model` instead of names.model.
Result<Scenario> load_scenario(const Catalogue& catalogue, ModelSpec model,
                               const ScenarioNames& names);
Result<Scenario> scenario_of(const Catalogue& catalogue, const PlanFile& file);

// Completes a scenario that was loaded from files: applies the network bandwidth per node, the
// software options, and the host and memory properties that the profile measured. Error if a
// network bandwidth is given for a cluster with one node.
Result<Scenario> completed(Scenario scenario, const PartValues& parts, double node_gbps);

// Completes the software of a scenario: applies the software options, and the properties that the
// profile measured.
StackSpec completed_stack(StackSpec stack, const PartValues& parts, const Scenario& scenario);

}  // namespace tpsim

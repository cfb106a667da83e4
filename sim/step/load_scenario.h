// Loads the scenario for given names, for plan files, the window, its web page and programs.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_file.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Catalogue names or paths. An empty profile or stack means the cluster's default. The cluster
// this-machine is made from the profile (costs/machine_cluster.h).
struct ScenarioNames {
  std::string model = {};
  std::string cluster = {};
  std::string profile = {};
  std::string stack = {};
  PartValues parts = {};  // instead of the stack's own
  double node_gbps = 0;   // bandwidth per node in Gbit/s; 0: the cluster's
};
// The model's name is the name inside the plan file, which may not be in the catalogue.
ScenarioNames names_of(const PlanFile& file);

Result<Scenario> load_scenario(const Catalogue& catalogue, const ScenarioNames& names);
// Uses `model` instead of names.model.
Result<Scenario> load_scenario(const Catalogue& catalogue, ModelSpec model,
                               const ScenarioNames& names);
Result<Scenario> scenario_of(const Catalogue& catalogue, const PlanFile& file);

// Completes a scenario loaded from files: applies the network rate, the software parts, and the
// host and memory properties that the profile measured. Error for a rate between nodes on a cluster
// with one node.
Result<Scenario> completed(Scenario scenario, const PartValues& parts, double node_gbps);

// Completes the software of a scenario: applies the parts, and what the profile measured.
StackSpec completed_stack(StackSpec stack, const PartValues& parts, const Scenario& scenario);

}  // namespace tpsim

// The scenario that names stand for: what plan files, the window, its page and programs start from.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_file.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Names of the catalogue, or paths of files. An empty profile or stack is the cluster's own. The
// cluster this-machine is that of the profile (costs/machine_cluster.h).
struct ScenarioNames {
  std::string model = {};
  std::string cluster = {};
  std::string profile = {};
  std::string stack = {};
  PartValues parts = {};  // in place of the stack's own
  double node_gbps = 0;   // what leaves a node, in Gbit/s; 0: the cluster's own
};
// The model's name is that inside the plan file: no name of the catalogue needs to be like it.
ScenarioNames names_of(const PlanFile& file);

Result<Scenario> load_scenario(const Catalogue& catalogue, const ScenarioNames& names);
// `model` in place of the one that is named.
Result<Scenario> load_scenario(const Catalogue& catalogue, ModelSpec model,
                               const ScenarioNames& names);
Result<Scenario> scenario_of(const Catalogue& catalogue, const PlanFile& file);

// Completes a scenario whose model, cluster, profile and stack are as the files have them: the
// network's stated rate, the stated parts, and what the profile measured of the software. Fails for
// a rate between nodes on a cluster of one node.
Result<Scenario> completed(Scenario scenario, const PartValues& parts, double node_gbps);

// The software of a scenario, from its file: with the stated parts and what the profile measured.
StackSpec completed_stack(StackSpec stack, const PartValues& parts, const Scenario& scenario);

}  // namespace tpsim

// A scenario with the names of its cluster, profile and stack.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/machine/allocation.h"
#include "core/plan/plan_settings.h"
#include "core/scenario/plan_file.h"
#include "core/scenario/scenario.h"
#include "plans/questions/arrange.h"
#include "plans/questions/choice_risk.h"
#include "plans/questions/open_inputs.h"
#include "plans/search/search_result.h"

namespace tpsim::app {

// A scenario and the names with which its files can be loaded again.
struct NamedScenario {
  Scenario scenario;
  std::string cluster;
  std::string profile;
  std::string stack;
  PartValues parts;            // stated by the request or the plan file, which override the stack's
  double node_gbps = 0;        // requested network in Gb/s per node; 0: that of the cluster
  Allocation allocation = {};  // hosts that a scheduler gave; empty: nodes of the cluster
  AllocatedNodes nodes = {};   // of the allocation
  std::optional<EqualNodes> equal_nodes = {};  // the best plan on equal nodes, if they differ
  bool is_saved = false;                       // read from a plan file
  std::vector<std::string> dropped = {};  // facts of the plan file that the request made invalid
  // The cluster, stack or sequence length was not stated and is a default. Reports mark it as such.
  bool cluster_is_default = false, stack_is_default = false, seq_is_default = false;
  std::string stack_reason = {};  // why the default is not the cluster's stack; empty if it is
  // Changes of the software by a search because no plan fits otherwise; empty if nothing.
  std::string remedy = {};
  std::vector<std::string> settings_assumed = {};  // see PlanFile
  std::set<Setting> settings_left = {};            // settings of the plan that are defaults
  Assumed assumed = {};                            // set by widen_intervals()
  // Set for a ranking by time of several plans.
  std::optional<ChoiceRisk> risk = {};
  std::vector<TriedParts> tried = {};  // tried combinations of searched parts, best first
  // Single parts that make the best plan faster and that the search did not vary, best first.
  std::vector<TriedParts> untried = {};
  std::optional<PlannedRun> other_batch = {};  // of a search; see faster_batch()
};

ScenarioNames names_of(const NamedScenario& named);
Unstated unstated_of(const NamedScenario& named);
PlanFile plan_file_of(const NamedScenario& named, const Plan& plan);

// Stores the best searched values of software parts in `named`, so that later predictions and saved
// plans use them, and all tried combinations. Must be called after every search.
void adopt_parts(const std::vector<TriedParts>& tried, NamedScenario& named);

}  // namespace tpsim::app

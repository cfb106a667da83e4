// A scenario with the names of its parts.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/plan/plan_settings.h"
#include "core/scenario/scenario.h"
#include "plans/questions/open_inputs.h"
#include "plans/search/search_result.h"

namespace tpsim::cli {

// A scenario and the names for loading its parts again.
struct NamedScenario {
  Scenario scenario;
  std::string cluster;
  std::string profile;
  std::string stack;
  PartValues parts;                       // requested instead of the stack's own
  double node_gbps = 0;                   // requested network; 0: the cluster's
  bool is_saved = false;                  // from a plan file
  std::vector<std::string> dropped = {};  // facts of the plan file that options invalidated
  // Whether the cluster or stack is a default. Reports mark defaults.
  bool cluster_is_default = false, stack_is_default = false;
  std::vector<std::string> settings_assumed = {};  // see PlanFile
  std::set<Setting> settings_left = {};
  Assumed assumed = {};                // set when a plan is predicted
  std::vector<TriedParts> tried = {};  // combinations of searched parts, best first
};

}  // namespace tpsim::cli

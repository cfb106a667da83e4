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

// A scenario and the names under which its parts can be loaded again.
struct NamedScenario {
  Scenario scenario;
  std::string cluster;
  std::string profile;
  std::string stack;
  PartValues parts;                       // asked for in place of the stack's own
  double node_gbps = 0;                   // likewise of the cluster's network; 0: the cluster's
  bool is_saved = false;                  // a plan file is behind it
  std::vector<std::string> dropped = {};  // of the plan file, made void by options
  // Inputs that neither an option nor a plan file states. Reports mark them as defaults.
  bool cluster_is_default = false, stack_is_default = false;
  std::vector<std::string> settings_assumed = {};  // see PlanFile
  std::set<Setting> settings_left = {};
  Assumed assumed = {};                // once a plan was predicted
  std::vector<TriedParts> tried = {};  // parts that a search chose among, the best first
};

}  // namespace tpsim::cli

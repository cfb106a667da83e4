// A scenario with the names of its cluster, profile and stack.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/plan/plan_settings.h"
#include "core/scenario/scenario.h"
#include "plans/questions/open_inputs.h"
#include "plans/search/search_result.h"

namespace tpsim::cli {

// A scenario and the names with which its files can be loaded again.
struct NamedScenario {
  Scenario scenario;
  std::string cluster;
  std::string profile;
  std::string stack;
  PartValues parts;       // parts set by options or the plan file, which override the stack's
  double node_gbps = 0;   // requested network in Gb/s per node; 0: that of the cluster
  bool is_saved = false;  // read from a plan file
  std::vector<std::string> dropped = {};  // facts of the plan file that options made invalid
  // The cluster or stack was not stated and is a default. Reports mark it as such.
  bool cluster_is_default = false, stack_is_default = false;
  std::vector<std::string> settings_assumed = {};  // see PlanFile
  std::set<Setting> settings_left = {};
  Assumed assumed = {};                // set by widen_intervals()
  std::vector<TriedParts> tried = {};  // tried combinations of searched parts, best first
};

}  // namespace tpsim::cli

// A plan with everything needed to judge or run it again.
#pragma once

#include <string>
#include <vector>

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// Hashes of the files behind a plan's names, as they were when it was saved; empty where nobody
// noted them. Spaces and line breaks of a file do not count.
struct PlanContents {
  std::string cluster, profile, stack;
  bool empty() const { return cluster.empty() && profile.empty() && stack.empty(); }
};

// The model is held in full; cluster, profile and stack are catalogue names or paths.
struct PlanFile {
  ModelSpec model;
  std::string cluster;
  std::string profile;
  std::string stack;
  PartValues parts;  // in place of the stack's own
  Plan plan;
  double node_gbps = 0;  // what leaves a node, where it is not the cluster's own; 0: the cluster's
  // Nobody named the software or the network: predictions have the wider interval of that.
  bool stack_assumed = false, network_assumed = false;
  // Settings of the launch file that were not known and that were taken to change nothing:
  // predictions have a wider interval for them.
  std::vector<std::string> settings_assumed = {};
  PlanContents contents = {};
};

}  // namespace tpsim

// A plan with everything needed to predict or run it again.
#pragma once

#include <string>
#include <vector>

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// Hashes of the files behind a plan's names at the time of saving; empty if unknown. The hashes do
// not depend on white space.
struct PlanContents {
  std::string cluster, profile, stack;
  bool empty() const { return cluster.empty() && profile.empty() && stack.empty(); }
};

// Contains the whole model; cluster, profile and stack are catalogue names or paths.
struct PlanFile {
  ModelSpec model;
  std::string cluster;
  std::string profile;
  std::string stack;
  PartValues parts;  // values that replace the stack's
  Plan plan;
  double node_gbps = 0;  // bandwidth per node in Gb/s; 0: the cluster's
  // Whether software or network were assumed and not given. Predictions then have a wider interval.
  bool stack_assumed = false, network_assumed = false;
  // Unknown settings of the launch file, which are assumed to have no effect. Predictions then have
  // a wider interval.
  std::vector<std::string> settings_assumed = {};
  PlanContents contents = {};
  std::vector<std::string> nodes = {};  // hosts that a scheduler gave (core/machine/allocation.h)
};

}  // namespace tpsim

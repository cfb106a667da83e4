// A plan with everything needed to predict or run it again.
#pragma once

#include <string>
#include <vector>

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/software/stack_parts.h"

namespace tpsim {

// Hashes of the files behind a plan's names at the time of saving; empty if unknown. White space of
// a file does not count.
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
  PartValues parts;  // instead of the stack's own
  Plan plan;
  double node_gbps = 0;  // bandwidth per node in Gb/s; 0: the cluster's
  // Software or network were not given but assumed: predictions have a wider interval.
  bool stack_assumed = false, network_assumed = false;
  // Unknown settings of the launch file, assumed to have no effect: predictions have a wider
  // interval.
  std::vector<std::string> settings_assumed = {};
  PlanContents contents = {};
};

}  // namespace tpsim

// Environments of runs that no known table describes: the usual machine of their GPU, with the
// software that the run names, or else the default software of that machine.
#pragma once

#include <vector>

#include "core/machine/cluster_spec.h"
#include "evidence/runs/run_environment.h"

namespace tpsim {

// Returns an environment for each GPU in `usual_for` of the clusters. Longer GPU names come first,
// then those with a framework, so that the first match is the most specific one.
std::vector<RunEnvironment> usual_environments(const std::vector<ClusterSpec>& clusters);

}  // namespace tpsim

// The inputs of a prediction besides the plan: model, cluster, profile and software.
#pragma once

#include <vector>

#include "core/base/work_limits.h"
#include "core/machine/cluster_spec.h"
#include "core/machine/profile.h"
#include "core/model/model_spec.h"
#include "core/plan/rank_packing.h"
#include "core/software/stack_spec.h"

namespace tpsim {

struct Scenario {
  ModelSpec model;
  ClusterSpec cluster;
  Profile profile;
  StackSpec stack;
  std::vector<RankNodes> rank_nodes = {};  // on nodes that differ; the first that suits
  WorkLimits limits = {};                  // limits on tpsim's own work; do not change results
};

}  // namespace tpsim

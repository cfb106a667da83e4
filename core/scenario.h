// What a plan is judged against: the model, the machines, their measured behaviour, the software.
#pragma once

#include "core/cluster_spec.h"
#include "core/model_spec.h"
#include "core/profile.h"
#include "core/stack_spec.h"
#include "core/work_limits.h"

namespace tpsim {

struct Scenario {
  ModelSpec model;
  ClusterSpec cluster;
  Profile profile;
  StackSpec stack;
  WorkLimits limits = {};  // of what is asked about them, no part of the answer
};

}  // namespace tpsim

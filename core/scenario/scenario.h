// What a plan is judged against: the model, the machines, their measured behaviour, the software.
#pragma once

#include "core/base/work_limits.h"
#include "core/machine/cluster_spec.h"
#include "core/machine/profile.h"
#include "core/model/model_spec.h"
#include "core/software/stack_spec.h"

namespace tpsim {

struct Scenario {
  ModelSpec model;
  ClusterSpec cluster;
  Profile profile;
  StackSpec stack;
  WorkLimits limits = {};  // of what is asked about them, no part of the answer
};

}  // namespace tpsim

// What a plan is judged against: the model, the machines, their measured behaviour, the software.
#pragma once

#include "core/cluster_spec.h"
#include "core/model_spec.h"
#include "core/profile.h"
#include "core/stack_spec.h"

namespace tpsim {

struct Scenario {
  ModelSpec model;
  ClusterSpec cluster;
  Profile profile;
  StackSpec stack;
  // Context parallelism: this many ranks share out each sequence, and model.seq is the part of one.
  // Its attention core then works through all parts (ring attention); their exchange is taken to be
  // hidden behind that.
  std::int64_t sequence_parts = 1;
};

}  // namespace tpsim

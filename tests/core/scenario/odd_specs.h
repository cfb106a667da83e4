// A value of every file kind with each field away from its default.
#pragma once

#include "core/machine/cluster_spec.h"
#include "core/machine/profile.h"
#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/software/stack_spec.h"

namespace tpsim::test {

// Numbers that no short decimal fraction equals.
inline constexpr double kThird = 1.0 / 3;

ModelSpec odd_model();
Plan odd_plan();
StackSpec odd_stack();
Profile odd_profile();
ClusterSpec odd_cluster();

}  // namespace tpsim::test

// A value of every file kind in which every field differs from its default.
#pragma once

#include "core/machine/cluster_spec.h"
#include "core/machine/profile.h"
#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/software/stack_spec.h"

namespace tpsim::test {

// Has no exact short decimal fraction.
inline constexpr double kThird = 1.0 / 3;

ModelSpec odd_model();
Plan odd_plan();
StackSpec odd_stack();
Profile odd_profile();
ClusterSpec odd_cluster();

}  // namespace tpsim::test

// Plans of every kind on small models, for laws that hold for all of them.
#pragma once

#include <vector>

#include "tests/sim/small_scenario.h"

namespace tpsim::test {

struct StepCase {
  const char* name;
  ModelSpec model;
  Plan plan;
  bool fused_accumulation = true;
  Finetune finetune = {};
};

std::vector<StepCase> step_cases();
// The small scenario with the case's model, with an allocation granularity of one byte.
Scenario scenario_of(const StepCase& c);
// The rank of a stage for which layers are traced.
std::int64_t traced_rank(const Plan& plan, std::int64_t stage);

}  // namespace tpsim::test

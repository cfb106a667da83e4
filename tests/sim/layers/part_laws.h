// A machine and a plan for comparing stack parts, and the terms that a part changes.
#pragma once

#include <cmath>
#include <set>
#include <string>

#include "core/software/stack_parts.h"
#include "tests/sim/with_parts.h"

namespace tpsim::test {

inline Scenario parts_scenario(ModelSpec model) {
  Scenario scenario = small_scenario(std::move(model));
  scenario.cluster.gpus_per_node = 4;
  scenario.cluster.nics_per_node = 4;
  return scenario;
}

inline Plan parts_plan(const ModelSpec& model) {
  Plan plan = plan_of(model, {.tp = 2, .pp = 2, .dp = 4}, 8);
  plan.recompute = Recompute::kNone;
  plan.attention = AttentionKind::kFlash;
  return plan;
}

template <class E>
PartValues value_of(StackPart part, E value) {
  return {{part, static_cast<std::int64_t>(value)}};
}

// Names of the step's terms with different times in `a` and `b`.
inline std::set<std::string> changed_terms(const Prediction& a, const Prediction& b) {
  std::set<std::string> changed;
  for (std::size_t i = 0; i < a.breakdown.size(); ++i) {
    const double was = a.breakdown[i].time.value(), is = b.breakdown[i].time.value();
    if (std::fabs(was - is) > 1e-9 * a.step.value()) {
      changed.insert(std::string(name_of(a.breakdown[i].kind)));
    }
  }
  return changed;
}

}  // namespace tpsim::test

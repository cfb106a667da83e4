// Changes of software or machine that may explain a measured step.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace tpsim::app {

struct LikelyCause {
  std::string what;  // "norm_kernel=torch", "links between nodes at a half of their bandwidth"
  Seconds step;      // predicted step with the change
};

// The part of the step that a change affects. kAny: the log does not show which part is slow.
enum class CauseClass { kAny, kCompute, kLinks, kHost };

// Returns the five changes of a class whose step is nearest to `measured`. Each change is predicted
// alone, and only changes that close at least a tenth of the gap are returned. Software of the
// framework is tried only in forms that the framework has. `own`: the stack without the plan's
// parts.
Result<std::vector<LikelyCause>> likely_causes(const Scenario& scenario, const StackSpec& own,
                                               const Plan& plan, Seconds predicted,
                                               Seconds measured, CauseClass acts_on);

}  // namespace tpsim::app

// Inputs that a prediction needs and the user did not state (plans/questions/open_inputs.h). They
// widen the interval of the prediction.
#pragma once

#include <span>
#include <string>

#include "app/scenario/named_scenario.h"
#include "core/base/result.h"
#include "core/plan/report.h"
#include "plans/questions/open_inputs.h"

namespace tpsim::app {

// Returns the inputs that neither the request nor the plan file states.
Result<OpenInputs> open_inputs(const NamedScenario& named);

// Returns the option with which the user can state the input.
std::string stating_option(OpenInput input);

// Widens the interval of every plan by the effect of unstated inputs. Stores the assumed values for
// the first plan in `named`.
Status widen_intervals(NamedScenario& named, std::span<PlannedRun> runs, int threads = 1);

}  // namespace tpsim::app

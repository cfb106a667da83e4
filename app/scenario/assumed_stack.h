// The stack of a request that does not state one.
#pragma once

#include <string>
#include <vector>

#include "app/scenario/scenario_request.h"
#include "core/software/launch_rules.h"

namespace tpsim::app {

// Returns the reason why the launcher cannot run the model with any plan; null if it can.
const LaunchRule* reason_against(Launcher launcher, const ModelSpec& model);

// Sets the stack of a request that does not state one: that of the cluster if it can run the model,
// else the first of assumable_stacks() that can.
Status assume_stack(const ScenarioRequest& request, const Catalogue& catalogue,
                    NamedScenario& named);

// Returns the stacks that can be assumed in place of the cluster's: those that run the model on
// its GPUs, the most usual first.
Result<std::vector<StackSpec>> assumable_stacks(const Catalogue& catalogue,
                                                const Scenario& scenario);

}  // namespace tpsim::app

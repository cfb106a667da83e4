// A plan as a shell command.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "gui/views/views.h"

namespace tpsim::gui {

// Returns the error of an action that needs a plan if none is shown.
Error no_plan();

// Returns the command that predicts this plan. `model` selects its model: "--model NAME", or a plan
// file. Without `states_stack` the command omits the stack, which is then the cluster's own and
// assumed.
std::string command_of(const PlanFile& file, const std::string& model, bool states_stack = true);

// Returns the command that predicts plan A of the window, with the same step and interval. Error if
// there is no plan, or no file with its model.
Result<std::string> shown_command(const ViewComputer& computer, const AppState& state);

}  // namespace tpsim::gui

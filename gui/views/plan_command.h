// A plan as words for a shell.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "gui/views/views.h"

namespace tpsim::gui {

// The error of an action that needs a plan where none is shown.
Error no_plan();

// The command that predicts this plan; `model` is what names its model: "--model NAME", or a plan
// file. Without `states_stack` the software is the cluster's own, and as unstated as it is here.
std::string command_of(const PlanFile& file, const std::string& model, bool states_stack = true);

// The command that predicts plan A of the window: its step, and its interval. Fails where there is
// no plan, or where no file holds its model.
Result<std::string> shown_command(const ViewComputer& computer, const AppState& state);

}  // namespace tpsim::gui

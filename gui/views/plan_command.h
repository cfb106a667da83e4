// A plan as the shell command that predicts it.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/scenario/plan_file.h"
#include "gui/views/views.h"

namespace tpsim::gui {

// Returns the error of an action that needs a plan while none is shown.
Error no_plan();

// Returns the command that predicts this plan. `model` selects the model: "--model NAME", or a plan
// file. The command omits the stack, and the cluster with its profile, if the file marks them as
// assumed: `tpsim simulate` then assumes the same and reports it.
std::string command_of(const PlanFile& file, const std::string& model);

// Returns the command that predicts plan A of the window, with the same step time and interval, and
// that succeeds. Returns an error without a plan, or if neither the catalogue nor a file has its
// model.
Result<std::string> shown_command(const ViewComputer& computer, const AppState& state);

}  // namespace tpsim::gui

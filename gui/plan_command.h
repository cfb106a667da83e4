// A plan as words for a shell.
#pragma once

#include <string>

#include "core/plan_file.h"

namespace tpsim::gui {

// The command that predicts this plan; `model` is what names its model: "--model NAME", or a plan
// file.
std::string command_of(const PlanFile& file, const std::string& model);

}  // namespace tpsim::gui

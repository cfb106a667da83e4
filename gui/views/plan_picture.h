// The plans of a search as one picture for a report: step time against memory with the Pareto
// front, memory of the best plan's stages, and its step in time. Light, without a window.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "gui/draw/drawing.h"

namespace tpsim::gui {

// `plans` holds at least one, the best first; the others are points of the scatter, all plans of
// the Pareto front among them.
Result<Drawing> plan_picture(const Scenario& scenario, const std::vector<PlannedRun>& plans);

}  // namespace tpsim::gui

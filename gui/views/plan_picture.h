// The plans of a search as one picture for a report: step time over memory with the Pareto front,
// memory of the best plan's stages, and its timeline. Light theme, without a window.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "gui/draw/drawing.h"

namespace tpsim::gui {

// `plans`: at least one, best first, including all plans of the Pareto front. All are points of the
// scatter plot.
Result<Drawing> plan_picture(const Scenario& scenario, const std::vector<PlannedRun>& plans);

}  // namespace tpsim::gui

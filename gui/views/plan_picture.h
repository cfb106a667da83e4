// Picture of the plans of a search for a report: step time over memory with the Pareto front,
// memory by stage of the best plan, and its timeline. Uses the light theme and needs no window.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "gui/draw/drawing.h"

namespace tpsim::gui {

// `plans` has at least one plan, best first: the fastest of each tensor parallel degree, and the
// Pareto front. Plans slower than three times the best are not drawn. `possible` is the number of
// combinations that may fit in memory; the picture states how many of them it does not draw.
Result<Drawing> plan_picture(const Scenario& scenario, const std::vector<PlannedRun>& plans,
                             std::int64_t possible);

}  // namespace tpsim::gui

// Picture of the plans of a search for a report: step time over memory with the Pareto front,
// memory by stage of the best plan, and its timeline. Uses the light theme and needs no window.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "gui/draw/drawing.h"

namespace tpsim::gui {

// Numbers of plans of the search that are not in the picture.
struct PictureScope {
  std::int64_t fitting = 0;  // plans that fit in memory and survived pruning, including those drawn
  std::int64_t skipped = 0;  // skipped because of their bounds, before the memory check
};

// `plans` has at least one plan, best first, and includes the Pareto front. Plans slower than three
// times the best are not drawn. The picture states how many plans are missing, from `scope`.
Result<Drawing> plan_picture(const Scenario& scenario, const std::vector<PlannedRun>& plans,
                             const PictureScope& scope);

}  // namespace tpsim::gui

// The plans of a search as one picture for a report: step time over memory with the Pareto front,
// memory of the best plan's stages, and its timeline. Light theme, without a window.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "gui/draw/drawing.h"

namespace tpsim::gui {

// The plans of the search that are not in the picture.
struct PictureScope {
  std::int64_t fitting = 0;  // plans that fit and survived pruning, including those drawn
  std::int64_t skipped = 0;  // skipped by their bounds before the memory check
};

// `plans`: at least one, best first, including all plans of the Pareto front. Each is a point of
// the scatter plot unless it is three times as slow as the best. The picture prints how many plans
// `scope` leaves out.
Result<Drawing> plan_picture(const Scenario& scenario, const std::vector<PlannedRun>& plans,
                             const PictureScope& scope);

}  // namespace tpsim::gui

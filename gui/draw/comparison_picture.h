// Stacked bars of the step time of several plans, by term, with 90 % intervals.
#pragma once

#include <string>
#include <vector>

#include "core/plan/report.h"
#include "gui/draw/drawing.h"

namespace tpsim::gui {

struct ComparedPlan {
  std::string name;
  Prediction predicted;
};

// Requires at least one plan.
Drawing comparison_picture(const std::vector<ComparedPlan>& plans);

}  // namespace tpsim::gui

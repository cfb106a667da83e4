// Steps of several plans as stacked bars of their terms, with their intervals.
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

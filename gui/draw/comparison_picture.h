// Steps of several plans as bars, one below the other: what they are spent on, and their intervals.
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

// One plan at least.
Drawing comparison_picture(const std::vector<ComparedPlan>& plans);

}  // namespace tpsim::gui

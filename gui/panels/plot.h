// Plots with two axes.
#pragma once

#include <string>

#include "gui/draw/axis.h"
#include "gui/panels/ui.h"

namespace tpsim::gui {

struct Plot {
  Rect area;  // of the data, inside the axes
  AxisScale x, y;

  float x_at(double value) const {
    return area.min.x + static_cast<float>(x.share(value)) * area.width();
  }
  float y_at(double value) const {
    return area.max.y - static_cast<float>(y.share(value)) * area.height();
  }
  ImVec2 at(double x_value, double y_value) const { return {x_at(x_value), y_at(y_value)}; }
};

struct AxisTitles {
  std::string x, y;  // with units; an empty x title hides the x ticks
};

// Draws grid, ticks and titles into `rect`, and returns the plot to draw the data with.
Plot draw_axes(const Ui& ui, Rect rect, const AxisScale& x, const AxisScale& y,
               const AxisTitles& titles);

void dashed_line(const Ui& ui, ImVec2 from, ImVec2 to, Rgba color);

}  // namespace tpsim::gui

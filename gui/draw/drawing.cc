#include "gui/draw/drawing.h"

namespace tpsim::gui {

Drawing::Drawing(double width, double height, Rgba background) : width_(width), height_(height) {
  rect(0, 0, width, height, background);
}

void Drawing::rect(double x, double y, double width, double height, Rgba color) {
  rects({x, y, width, height}, color);
}

void Drawing::rects(std::vector<double> numbers, Rgba color) {
  shapes_.push_back({ShapeKind::kRects, color, std::move(numbers)});
}

void Drawing::line(double x1, double y1, double x2, double y2, Rgba color, double thickness) {
  shapes_.push_back({ShapeKind::kLine, color, {x1, y1, x2, y2, thickness}});
}

void Drawing::dashes(double x1, double y1, double x2, double y2, Rgba color, double thickness) {
  shapes_.push_back({ShapeKind::kDashes, color, {x1, y1, x2, y2, thickness}});
}

void Drawing::circle(double x, double y, double radius, Rgba color) {
  shapes_.push_back({ShapeKind::kCircle, color, {x, y, radius}});
}

void Drawing::ring(double x, double y, double radius, Rgba color) {
  shapes_.push_back({ShapeKind::kRing, color, {x, y, radius}});
}

void Drawing::text(double x, double y, const TextStyle& style, std::string_view words) {
  shapes_.push_back({ShapeKind::kText,
                     style.color,
                     {x, y, style.size},
                     std::string(words),
                     style.anchor,
                     style.is_bold});
}

}  // namespace tpsim::gui

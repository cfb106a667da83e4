// A picture as a list of shapes, drawn in order, so that later shapes cover earlier ones. A drawing
// is written as SVG.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gui/draw/palette.h"

namespace tpsim::gui {

enum class Anchor : std::uint8_t { kStart, kMiddle, kEnd };

struct TextStyle {
  double size = 12;  // pixels
  Rgba color;
  Anchor anchor = Anchor::kStart;
  bool is_bold = false;
};

// Each kind lists the contents of DrawnShape::numbers, in pixels.
enum class ShapeKind : std::uint8_t {
  kRects,   // x, y, width, height of each rectangle; all have one color
  kLine,    // x1, y1, x2, y2, thickness
  kDashes,  // as kLine
  kCircle,  // x, y, radius
  kRing,    // as kCircle
  kText     // x, y of the baseline, size
};

struct DrawnShape {
  ShapeKind kind{};
  Rgba color;
  std::vector<double> numbers;
  std::string words = {};  // text of a kText shape
  Anchor anchor = Anchor::kStart;
  bool is_bold = false;
};

class Drawing {
 public:
  Drawing(double width, double height, Rgba background);

  void rect(double x, double y, double width, double height, Rgba color);
  // `numbers`: x, y, width, height of each rectangle.
  void rects(std::vector<double> numbers, Rgba color);
  void line(double x1, double y1, double x2, double y2, Rgba color, double thickness = 1);
  void dashes(double x1, double y1, double x2, double y2, Rgba color, double thickness = 1);
  void circle(double x, double y, double radius, Rgba color);
  void ring(double x, double y, double radius, Rgba color);
  void text(double x, double y, const TextStyle& style, std::string_view words);

  double width() const { return width_; }
  double height() const { return height_; }
  const std::vector<DrawnShape>& shapes() const { return shapes_; }

 private:
  double width_ = 0, height_ = 0;
  std::vector<DrawnShape> shapes_;
};

// Thickness of a ring's line in pixels.
inline constexpr double kRingThickness = 1.8;

std::string svg_text(const Drawing& drawing);

}  // namespace tpsim::gui

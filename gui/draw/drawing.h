// A picture as a list of shapes, drawn in order, so that later shapes cover earlier ones. A drawing
// can be written as SVG, as pixels (gui/draw/drawing_pixels.h), or as JSON for the program
// `tpsim-gui`, which contains the typeface.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/json/json_value.h"
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
  friend Result<Drawing> drawing_from(const JsonValue& root, const std::string& file);
  Drawing() = default;

  double width_ = 0, height_ = 0;
  std::vector<DrawnShape> shapes_;
};

// Thickness of a ring's line in pixels.
inline constexpr double kRingThickness = 1.8;

std::string svg_text(const Drawing& drawing);

JsonValue json_of(const Drawing& drawing);
// `file` names the input in errors.
Result<Drawing> drawing_from(const JsonValue& root, const std::string& file);

}  // namespace tpsim::gui

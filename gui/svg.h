// A picture as SVG text: rectangles, lines, circles, words.
#pragma once

#include <string>
#include <string_view>

#include "gui/palette.h"

namespace tpsim {

enum class Anchor : std::uint8_t { kStart, kMiddle, kEnd };

struct SvgText {
  double size = 12;  // pixels
  Rgba color;
  Anchor anchor = Anchor::kStart;
  bool is_bold = false;
};

class Svg {
 public:
  Svg(double width, double height, Rgba background);

  void rect(double x, double y, double width, double height, Rgba color);
  void line(double x1, double y1, double x2, double y2, Rgba color, double thickness = 1,
            bool is_dashed = false);
  void circle(double x, double y, double radius, Rgba color);
  void ring(double x, double y, double radius, Rgba color);
  // `y` is the baseline. The text is escaped.
  void text(double x, double y, const SvgText& style, std::string_view words);
  // A path of the "d" attribute's language, filled.
  void path(const std::string& d, Rgba color);

  std::string document() const;

 private:
  double width_, height_;
  std::string body_;
};

}  // namespace tpsim

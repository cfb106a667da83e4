// A drawing as SVG text.
#include <fmt/format.h>

#include "gui/draw/drawing.h"

namespace tpsim::gui {
namespace {

std::string escaped(std::string_view words) {
  std::string text;
  for (const char c : words) {
    switch (c) {
      case '&': text += "&amp;"; break;
      case '<': text += "&lt;"; break;
      case '>': text += "&gt;"; break;
      case '"': text += "&quot;"; break;
      default: text += c;
    }
  }
  return text;
}

// Formats a number with at most two decimals and without trailing zeros.
std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string opacity(Rgba color) {
  return color.a == 255 ? "" : fmt::format(" fill-opacity=\"{}\"", number(color.a / 255.0));
}

// Writes all rectangles of the shape as one path, since a timeline has thousands of rectangles.
std::string rects_text(const DrawnShape& shape) {
  const std::vector<double>& n = shape.numbers;
  if (n.size() == 4) {
    return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"{}/>\n",
                       number(n[0]), number(n[1]), number(n[2]), number(n[3]), hex(shape.color),
                       opacity(shape.color));
  }
  std::string path;
  for (std::size_t i = 0; i < n.size(); i += 4) {
    path += fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h{:.1f}z", n[i], n[i + 1], n[i + 2], n[i + 3],
                        -n[i + 2]);
  }
  return fmt::format("<path d=\"{}\" fill=\"{}\"{}/>\n", path, hex(shape.color),
                     opacity(shape.color));
}

std::string line_text(const DrawnShape& shape) {
  const std::vector<double>& n = shape.numbers;
  return fmt::format(
      "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
      number(n[0]), number(n[1]), number(n[2]), number(n[3]), hex(shape.color), number(n[4]),
      shape.kind == ShapeKind::kDashes ? " stroke-dasharray=\"5 3.5\"" : "");
}

std::string words_text(const DrawnShape& shape) {
  static constexpr const char* kAnchors[] = {"start", "middle", "end"};
  const std::vector<double>& n = shape.numbers;
  return fmt::format(
      "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"{}\"{}>{}</text>\n",
      number(n[0]), number(n[1]), number(n[2]), hex(shape.color),
      kAnchors[static_cast<int>(shape.anchor)], shape.is_bold ? " font-weight=\"600\"" : "",
      escaped(shape.words));
}

std::string circle_text(const DrawnShape& shape) {
  const std::vector<double>& n = shape.numbers;
  const std::string ink =
      shape.kind == ShapeKind::kRing
          ? fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"", hex(shape.color),
                        number(kRingThickness))
          : fmt::format("fill=\"{}\"{}", hex(shape.color), opacity(shape.color));
  return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {}/>\n", number(n[0]), number(n[1]),
                     number(n[2]), ink);
}

std::string shape_text(const DrawnShape& shape) {
  switch (shape.kind) {
    case ShapeKind::kRects: return rects_text(shape);
    case ShapeKind::kLine:
    case ShapeKind::kDashes: return line_text(shape);
    case ShapeKind::kCircle:
    case ShapeKind::kRing: return circle_text(shape);
    case ShapeKind::kText: return words_text(shape);
  }
  return "";
}

}  // namespace

std::string svg_text(const Drawing& drawing) {
  std::string body;
  for (const DrawnShape& shape : drawing.shapes()) body += shape_text(shape);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"Inter, 'Helvetica Neue', Arial, sans-serif\" "
      "font-variant-numeric=\"tabular-nums\">\n{2}</svg>\n",
      number(drawing.width()), number(drawing.height()), body);
}

}  // namespace tpsim::gui

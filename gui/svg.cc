#include "gui/svg.h"

#include <fmt/format.h>

namespace tpsim {
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

// At most two decimals, and none that say nothing.
std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string opacity(Rgba color) {
  return color.a == 255 ? "" : fmt::format(" fill-opacity=\"{}\"", number(color.a / 255.0));
}

}  // namespace

Svg::Svg(double width, double height, Rgba background) : width_(width), height_(height) {
  rect(0, 0, width, height, background);
}

void Svg::rect(double x, double y, double width, double height, Rgba color) {
  body_ +=
      fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"{}/>\n", number(x),
                  number(y), number(width), number(height), hex(color), opacity(color));
}

void Svg::line(double x1, double y1, double x2, double y2, Rgba color, double thickness,
               bool is_dashed) {
  body_ += fmt::format(
      "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
      number(x1), number(y1), number(x2), number(y2), hex(color), number(thickness),
      is_dashed ? " stroke-dasharray=\"5 3.5\"" : "");
}

void Svg::circle(double x, double y, double radius, Rgba color) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"{}/>\n", number(x),
                       number(y), number(radius), hex(color), opacity(color));
}

void Svg::ring(double x, double y, double radius, Rgba color) {
  body_ += fmt::format(
      "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n",
      number(x), number(y), number(radius), hex(color));
}

void Svg::text(double x, double y, const SvgText& style, std::string_view words) {
  static constexpr const char* kAnchors[] = {"start", "middle", "end"};
  body_ += fmt::format(
      "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"{}\"{}>{}</text>\n",
      number(x), number(y), number(style.size), hex(style.color),
      kAnchors[static_cast<int>(style.anchor)], style.is_bold ? " font-weight=\"600\"" : "",
      escaped(words));
}

void Svg::path(const std::string& d, Rgba color) {
  body_ += fmt::format("<path d=\"{}\" fill=\"{}\"/>\n", d, hex(color));
}

std::string Svg::document() const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"Inter, 'Helvetica Neue', Arial, sans-serif\" "
      "font-variant-numeric=\"tabular-nums\">\n{2}</svg>\n",
      number(width_), number(height_), body_);
}

}  // namespace tpsim

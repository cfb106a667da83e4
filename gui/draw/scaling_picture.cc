#include "gui/draw/scaling_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/numbers.h"

namespace tpsim::gui {
namespace {

constexpr double kCurveWidth = 760, kCurveHeight = 480;
constexpr double kLeft = 110, kRight = 730, kTop = 70, kBottom = 420;

// Range of an axis in powers of two, which contains all points.
struct Octaves {
  double first = 0, last = 1;
  double share(double value) const { return (std::log2(value) - first) / (last - first); }
};

Octaves octaves_of(double least, double most) {
  Octaves range{std::floor(std::log2(least)), std::ceil(std::log2(most))};
  if (range.last <= range.first) range.last = range.first + 1;
  return range;
}

}  // namespace

Drawing scaling_picture(std::string_view model, std::string_view cluster,
                        const std::vector<ScalingPoint>& points) {
  const Palette& colors = palette_of(Theme::kLight);
  Drawing out(kCurveWidth, kCurveHeight, colors.panel);
  out.text(kLeft, 32, {16, colors.text, Anchor::kStart, true},
           fmt::format("{} on {}", model, cluster));
  out.text(kLeft, 54, {12, colors.dim},
           "tokens/s of the best plan; gray line: perfect scaling from the first point");
  const ScalingPoint& first = points.front();
  const double perfect = first.tokens_per_s * static_cast<double>(points.back().gpus) /
                         static_cast<double>(first.gpus);
  double most = perfect;
  double least = first.tokens_per_s;
  for (const ScalingPoint& point : points) {
    most = std::max(most, point.tokens_per_s);
    least = std::min(least, point.tokens_per_s);
  }
  const Octaves x =
      octaves_of(static_cast<double>(first.gpus), static_cast<double>(points.back().gpus));
  const Octaves y = octaves_of(least, most);
  const auto x_at = [&](double gpus) { return kLeft + x.share(gpus) * (kRight - kLeft); };
  const auto y_at = [&](double rate) { return kBottom - y.share(rate) * (kBottom - kTop); };
  for (double octave = y.first; octave <= y.last; ++octave) {
    const double value = std::exp2(octave);
    out.line(kLeft, y_at(value), kRight, y_at(value), colors.grid);
    out.text(kLeft - 8, y_at(value) + 4, {12, colors.dim, Anchor::kEnd},
             count_text(std::llround(value)));
  }
  for (double octave = x.first; octave <= x.last; ++octave) {
    const double value = std::exp2(octave);
    out.line(x_at(value), kBottom, x_at(value), kBottom + 4, colors.line);
    out.text(x_at(value), kBottom + 20, {12, colors.dim, Anchor::kMiddle},
             count_text(std::llround(value)));
  }
  out.text(kRight, kBottom + 40, {12, colors.dim, Anchor::kEnd}, "GPUs");
  out.dashes(x_at(static_cast<double>(first.gpus)), y_at(first.tokens_per_s),
             x_at(static_cast<double>(points.back().gpus)), y_at(perfect), colors.dim);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double px = x_at(static_cast<double>(points[i].gpus));
    const double py = y_at(points[i].tokens_per_s);
    if (i > 0) {
      out.line(x_at(static_cast<double>(points[i - 1].gpus)), y_at(points[i - 1].tokens_per_s), px,
               py, colors.accent, 1.5);
    }
    out.circle(px, py, 4, colors.accent);
  }
  return out;
}

}  // namespace tpsim::gui

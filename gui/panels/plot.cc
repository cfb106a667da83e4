#include "gui/panels/plot.h"

#include <algorithm>
#include <cmath>

namespace tpsim::gui {

void dashed_line(const Ui& ui, ImVec2 from, ImVec2 to, Rgba color) {
  const float length = std::hypot(to.x - from.x, to.y - from.y);
  const float dash = ui.px(5), gap = ui.px(3.5F);
  const ImVec2 step{(to.x - from.x) / length, (to.y - from.y) / length};
  for (float at = 0; at < length; at += dash + gap) {
    const float end = std::min(at + dash, length);
    line(ui, {from.x + step.x * at, from.y + step.y * at},
         {from.x + step.x * end, from.y + step.y * end}, color, ui.px(1.2F));
  }
}

Plot draw_axes(const Ui& ui, Rect rect, const AxisScale& x, const AxisScale& y,
               const AxisTitles& titles) {
  ImFont* font = ui.fonts.small;
  const float letter = font->FontSize;
  Plot plot;
  plot.x = x;
  plot.y = y;
  plot.area = rect;
  // The title of y is above the axis. A low plot needs the space itself.
  const bool has_title = rect.height() > ui.px(70);
  if (has_title) plot.area.min.y += letter + ui.px(5);
  if (!titles.x.empty()) plot.area.max.y -= letter + ui.px(5);
  const std::vector<Tick> y_ticks =
      ticks(y, std::max(2, static_cast<int>(plot.area.height() / ui.px(19))));
  float label_width = 0;
  for (const Tick& tick : y_ticks)
    label_width = std::max(label_width, text_size(font, tick.label).x);
  plot.area.min.x += label_width + ui.px(7);

  if (has_title) put_text(ui, font, {rect.min.x, rect.min.y}, ui.colors.dim, titles.y);
  float last = plot.area.max.y + 2 * letter;  // of the label below
  for (const Tick& tick : y_ticks) {
    const float at = std::round(plot.y_at(tick.value)) + 0.5F;
    line(ui, {plot.area.min.x, at}, {plot.area.max.x, at}, ui.colors.grid);
    if (last - at < letter) continue;
    last = at;
    put_text(ui, font, {plot.area.min.x - ui.px(6), at - letter / 2 - 1}, ui.colors.dim, tick.label,
             Align::kRight);
  }
  const float axis = std::round(plot.area.max.y) + 0.5F;
  line(ui, {plot.area.min.x, axis}, {plot.area.max.x, axis}, ui.colors.line);
  if (titles.x.empty()) return plot;

  const float title_width = put_text(ui, font, {plot.area.max.x, plot.area.max.y + ui.px(5)},
                                     ui.colors.dim, titles.x, Align::kRight);
  for (const Tick& tick : ticks(x, std::max(2, static_cast<int>(plot.area.width() / ui.px(58))))) {
    const float at = std::round(plot.x_at(tick.value)) + 0.5F;
    line(ui, {at, plot.area.min.y}, {at, plot.area.max.y}, ui.colors.grid);
    const float half = text_size(font, tick.label).x / 2;
    if (at + half > plot.area.max.x - title_width - ui.px(8)) continue;
    put_text(ui, font, {at, plot.area.max.y + ui.px(5)}, ui.colors.dim, tick.label, Align::kCenter);
  }
  return plot;
}

}  // namespace tpsim::gui

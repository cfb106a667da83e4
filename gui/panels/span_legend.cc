// The legend of the timeline, with the colors of the span kinds.
#include <array>

#include "gui/panels/panels.h"

namespace tpsim::gui {

float draw_span_legend(Ui& ui, Rect rect) {
  std::array<bool, kSpanKindCount> occurs{};
  for (const PlanView* view : {ui.views.a.get(), ui.views.b.get()}) {
    if (view == nullptr || view->error) continue;
    for (const TimelineSpan& span : view->timeline.spans) {
      if (span.end > span.begin) occurs[static_cast<std::size_t>(span.kind)] = true;
    }
  }
  const float line_height = ui.fonts.small->FontSize + ui.px(2);
  const auto place = [&](ImVec2 at, bool draws) {
    for (int kind = 0; kind < kSpanKindCount; ++kind) {
      if (!occurs[static_cast<std::size_t>(kind)]) continue;
      const auto name = tpsim::name_of(static_cast<SpanKind>(kind));
      const float width = ui.px(14) + text_size(ui.fonts.small, name).x;
      if (at.x + width > rect.max.x && at.x > rect.min.x) at = {rect.min.x, at.y + line_height};
      if (draws) legend_entry(ui, at, ui.colors.span[static_cast<std::size_t>(kind)], name);
      at.x += width + ui.px(12);
    }
    return at.y + line_height;
  };
  const float height = place({rect.min.x, 0}, false);
  if (!has_legend(rect, height + line_height)) return 0;  // the axis needs a line too
  place({rect.min.x, rect.max.y - height}, true);
  return height;
}

}  // namespace tpsim::gui

// The panel of a validation report: predicted and measured step times with 90 % intervals.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/numbers.h"
#include "gui/panels/panels.h"
#include "gui/panels/plot.h"

namespace tpsim::gui {
namespace {

bool holds_measurement(const MeasuredRow& row) {
  return row.low <= row.measured && row.measured <= row.high;
}

void draw_file_field(Ui& ui, Rect rect) {
  std::array<char, 512> text{};
  ui.state.measured_file.copy(text.data(), text.size() - 1);
  ImGui::SetCursorScreenPos({rect.min.x, rect.max.y - ImGui::GetFrameHeight()});
  ImGui::SetNextItemWidth(rect.width());
  if (ImGui::InputTextWithHint("##measured", "report.json of tpsim validate --runs ... --json",
                               text.data(), text.size(), ImGuiInputTextFlags_EnterReturnsTrue)) {
    ui.state.measured_file = text.data();
  }
  note_item(ui, "validation report");
}

Plot axes_of(const Ui& ui, Rect rect, const MeasuredRuns& runs) {
  double least = runs.rows.front().measured, most = least;
  for (const MeasuredRow& row : runs.rows) {
    least = std::min({least, row.measured, row.predicted});
    most = std::max({most, row.measured, row.predicted});
  }
  const AxisScale scale = scale_around(least, most);
  return draw_axes(ui, rect, scale, scale, {"measured, s", "predicted, s"});
}

void draw_rows(Ui& ui, const Plot& plot, const MeasuredRuns& runs) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect(plot.area.min, plot.area.max, true);
  line(ui, plot.at(plot.x.least, plot.x.least), plot.at(plot.x.most, plot.x.most), ui.colors.mark);
  const MeasuredRow* under_mouse = nullptr;
  float least = ui.px(10);
  for (const MeasuredRow& row : runs.rows) {
    const Rgba color = holds_measurement(row) ? ui.colors.accent : ui.colors.other;
    const float x = plot.x_at(row.measured);
    line(ui, {x, plot.y_at(row.low)}, {x, plot.y_at(row.high)}, with_alpha(color, 0.45));
    const ImVec2 at{x, plot.y_at(row.predicted)};
    list->AddCircleFilled(at, ui.px(2.8F), ui.ink(color), 10);
    const ImVec2 mouse = ImGui::GetMousePos();
    const float distance = std::hypot(at.x - mouse.x, at.y - mouse.y);
    if (distance < least) least = distance, under_mouse = &row;
  }
  list->PopClipRect();
  if (under_mouse == nullptr || !ImGui::IsWindowHovered()) return;
  tooltip(ui,
          fmt::format("{}\nmeasured {}\npredicted {} (90 %: {} to {})\n{:+.1f} %", under_mouse->id,
                      time_text(Seconds(under_mouse->measured)),
                      time_text(Seconds(under_mouse->predicted)),
                      time_text(Seconds(under_mouse->low)), time_text(Seconds(under_mouse->high)),
                      100 * (under_mouse->predicted / under_mouse->measured - 1))
              .c_str());
}

}  // namespace

void draw_measured(Ui& ui, Rect rect) {
  draw_file_field(ui, rect);
  const Rect area{rect.min, {rect.max.x, rect.max.y - ImGui::GetFrameHeight() - ui.px(6)}};
  const MeasuredRuns* runs = ui.views.measured.get();
  if (runs == nullptr) {
    return empty_state(ui, area, "No validation report is open",
                       "Write one with  tpsim validate --runs runs.csv --json > report.json  and "
                       "type its name below.");
  }
  if (runs->error) {
    return empty_state(ui, area, "The report cannot be read: " + runs->error->message,
                       runs->error->hint);
  }
  const float side = std::min(area.width() * 0.6F, area.height() * 1.8F);
  const Plot plot = axes_of(ui, {area.min, {area.min.x + side, area.max.y}}, *runs);
  draw_rows(ui, plot, *runs);
  ImVec2 at{area.min.x + side + ui.px(16), area.min.y + ui.px(16)};
  const float width = area.max.x - at.x;
  const auto say = [&](ImFont* font, Rgba color, const std::string& text) {
    put_text(ui, font, at, color, fitted(font, text, width));
    at.y += font->FontSize + ui.px(4);
  };
  const auto say_figures = [&](const MeasuredFigures& figures, const char* which) {
    if (figures.rows == 0) return;
    say(ui.fonts.bold, ui.colors.text,
        fmt::format("{}, mean error {:.2f} %", counted_text(figures.rows, "row"),
                    100 * figures.mean_error));
    say(ui.fonts.small, ui.colors.dim,
        fmt::format("90 % intervals: coverage {:.1f} %", 100 * figures.coverage));
    say(ui.fonts.small, ui.colors.dim, which);
  };
  say_figures(runs->tested, "rows to which no constant was fitted");
  say_figures(runs->fitted, "rows to which constants were fitted");
  if (runs->skipped > 0) {
    say(ui.fonts.small, ui.colors.dim,
        fmt::format("{} not counted",
                    counted_text(static_cast<std::int64_t>(runs->skipped), "row")));
  }
  legend_entry(ui, at, ui.colors.accent, "measurement inside the interval");
  at.y += ui.fonts.small->FontSize + ui.px(4);
  legend_entry(ui, at, ui.colors.other, "measurement outside the interval");
}

}  // namespace tpsim::gui

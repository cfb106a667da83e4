// The headline panel: the recommendation in sentences, and key figures of plans A and B.
#include <fmt/format.h>

#include <cmath>

#include "core/base/numbers.h"
#include "gui/panels/panels.h"
#include "gui/views/answer.h"
#include "gui/views/breakdown.h"

namespace tpsim::gui {
namespace {

struct Figure {
  const char* label;
  std::string value;
  std::string detail;
  Rgba color;
};

std::vector<Figure> figures_of(const Ui& ui, const PlanView& view) {
  const Prediction& p = view.predicted;
  const TimeScale scale = time_scale(p.step);
  const Palette& c = ui.colors;
  const Rgba chance = p.p_oom >= 0.2 ? c.bad : p.p_oom >= 0.05 ? c.warn : c.good;
  return {
      {"Step time", fmt::format("{} {}", scaled_text(p.step, scale), scale.unit),
       view.has_interval ? fmt::format("90 %: {}–{} {}", scaled_text(p.step_low, scale),
                                       scaled_text(p.step_high, scale), scale.unit)
                         : std::string("90 %: …"),
       c.text},
      {"Speed", fmt::format("{:.1f}", p.hardware_tflops_per_gpu),
       fmt::format("hardware TFLOP/s per GPU · model {:.1f}", p.model_tflops_per_gpu), c.text},
      {"MFU", percent_text(p.mfu), "of the GPU's peak", c.text},
      {"Tokens", count_text(std::llround(p.tokens_per_s)), "per second", c.text},
      {"Memory", fmt::format("{} GiB", gib_text(p.peak, gib_decimals(p.peak))),
       fmt::format("of {} GiB · fullest GPU", gib_text(p.capacity)), c.text},
      {"Out of memory", chance_text(p.p_oom), "probability", chance},
      {"Bubble", percent_text(bubble_share(p)), "of the step · busiest stage", c.text},
  };
}

constexpr std::array<float, 7> kShares = {1.35F, 1.6F, 0.95F, 1.0F, 1.25F, 1.05F, 1.05F};

// A line of the recommendation.
struct Line {
  ImFont* font;
  Rgba color;
  std::string text;
  std::string whole;  // the sentence if it is shortened
};

// Returns the lines to draw, at most `width` wide; none if plan A is not set or cannot run. In a
// low window every sentence but the first has one line, and the rest of it is in a tooltip.
std::vector<Line> lines_of(const Ui& ui, float width) {
  if (ui.views.error) return {};
  const Answer answer = answer_of(ui.views);
  const bool is_low = ImGui::GetIO().DisplaySize.y < ui.px(760);
  std::vector<Line> lines;
  const auto add = [&](ImFont* font, Rgba color, const std::string& text) {
    if (text.empty()) return;
    if (is_low && !lines.empty()) {
      const std::string shown = fitted(font, text, width);
      lines.push_back({font, color, shown, shown == text ? "" : text});
      return;
    }
    for (std::string& line : wrapped_lines(font, text, width)) {
      lines.push_back({font, color, std::move(line), ""});
    }
  };
  add(ui.fonts.bold, ui.colors.text, answer.use);
  add(ui.fonts.small, ui.colors.text, answer.cost);
  add(ui.fonts.small, ui.colors.text, answer.limits);
  add(ui.fonts.small, ui.colors.warn, answer.assumed);
  add(ui.fonts.small, ui.colors.dim, answer.others);
  add(ui.fonts.small, ui.colors.dim, answer.setup);
  return lines;
}

constexpr float kMargin = 16, kFigures = 66, kBetweenLines = 3;  // points

void draw_message(Ui& ui, Rect rect, const Error& error) {
  fill(ui, {rect.min, {rect.min.x + ui.px(4), rect.max.y}}, ui.colors.bad, ui.px(2));
  const float width = rect.width() - ui.px(32);
  put_text(ui, ui.fonts.bold, {rect.min.x + ui.px(16), rect.min.y + ui.px(14)}, ui.colors.bad,
           fitted(ui.fonts.bold, error.message, width));
  put_text(
      ui, ui.fonts.body, {rect.min.x + ui.px(16), rect.min.y + ui.px(38)}, ui.colors.dim,
      fitted(ui.fonts.body,
             error.hint.empty() ? "Choose other values above or in the plan." : error.hint, width));
}

void draw_content(Ui& ui, Rect rect, const std::vector<Line>& lines) {
  if (ui.views.error) return draw_message(ui, rect, *ui.views.error);
  if (!ui.views.a) {
    const Findings& found = ui.views.found;
    if (found.error && !ui.views.is_stale) return draw_message(ui, rect, *found.error);
    put_text(ui, ui.fonts.body, {rect.min.x + ui.px(16), rect.center().y - ui.px(8)}, ui.colors.dim,
             ui.views.is_searching ? "Searching…" : "No plan. The plan table shows why.");
    return;
  }
  if (ui.views.a->error) return draw_message(ui, rect, *ui.views.a->error);
  float top = rect.min.y + ui.px(8);
  const float text_width = rect.width() - ui.px(2 * kMargin);
  for (const Line& line : lines) {
    const ImVec2 at{rect.min.x + ui.px(kMargin), top};
    put_text(ui, line.font, at, line.color, line.text);
    top += line.font->FontSize + ui.px(kBetweenLines);
    const ImVec2 end{at.x + text_width, top};
    if (!line.whole.empty() && ImGui::IsMouseHoveringRect(at, end) && ImGui::IsWindowHovered()) {
      tooltip(ui, line.whole.c_str());
    }
  }
  const float figures = rect.max.y - ui.px(kFigures);
  const std::vector<Figure> a = figures_of(ui, *ui.views.a);
  const bool has_b = ui.views.b && !ui.views.b->error;
  const std::vector<Figure> b = has_b ? figures_of(ui, *ui.views.b) : std::vector<Figure>();
  float sum = 0;
  for (const float share : kShares) sum += share;
  float x = rect.min.x + ui.px(16);
  const float room = rect.width() - ui.px(24);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float width = room * kShares[i] / sum - ui.px(10);
    put_text(ui, ui.fonts.small, {x, figures + ui.px(2)}, ui.colors.dim, a[i].label);
    const float value_width =
        put_text(ui, ui.fonts.big, {x, figures + ui.px(16)}, a[i].color, a[i].value);
    // B's figure is omitted if it does not fit, because a number with missing digits would mislead.
    const std::string other = has_b ? "B " + b[i].value : "";
    const bool has_room = text_size(ui.fonts.bold, other).x + value_width + ui.px(8) <= width;
    if (has_b && has_room) {
      put_text(ui, ui.fonts.bold, {x + value_width + ui.px(8), figures + ui.px(24)},
               ui.colors.other, other);
    }
    put_text(ui, ui.fonts.small, {x, figures + ui.px(45)}, ui.colors.dim,
             leading_clauses(ui.fonts.small, a[i].detail, width));
    x += room * kShares[i] / sum;
  }
}

}  // namespace

float draw_headline(Ui& ui, ImVec2 corner, float width) {
  const std::vector<Line> lines = lines_of(ui, width - ui.px(2 * kMargin));
  float height = ui.px(kFigures + 6);
  for (const Line& line : lines) height += line.font->FontSize + ui.px(kBetweenLines);
  const Rect rect{corner, {corner.x + width, corner.y + std::ceil(height)}};
  fill(ui, rect, ui.colors.panel, ui.px(6));
  note_area(ui, "headline", rect);
  draw_content(ui, rect, lines);
  return rect.height();
}

}  // namespace tpsim::gui

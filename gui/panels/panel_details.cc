// The details panel: breakdown of the step by term, differences between plans A and B, and
// predictions compared with measurements.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "app/answers/term_texts.h"
#include "core/base/numbers.h"
#include "gui/panels/panels.h"
#include "gui/views/breakdown.h"
#include "gui/views/differences.h"

namespace tpsim::gui {
namespace {

std::string explanation_of(const BreakdownRow& row, const PlanView& view) {
  const Seconds step = view.predicted.step;
  if (row.term == nullptr) {
    return fmt::format("{}: {}, {} of the step\n{}", row.name, time_text(row.time),
                       percent_text(row.time / step), row.terms);
  }
  const Term& term = *row.term;
  const app::TermText text =
      app::term_text(*view.scenario, view.plan, view.predicted, view.costs.transfer, term.kind);
  return fmt::format("{}: {}, {} of the step\n\n{}\n\n{}\n\nSource: {}", plain(name_of(term.kind)),
                     time_text(term.time), percent_text(term.time / step), text.formula,
                     text.inputs, text.source);
}

struct WaterfallRow {
  float top = 0, height = 0;
  float label = 0, bars = 0, bars_end = 0, value = 0;  // x positions
};

void draw_term(Ui& ui, const WaterfallRow& row, const BreakdownRow& term, const PlanView& view) {
  const Seconds step = view.predicted.step;
  const float scale = (row.bars_end - row.bars) / static_cast<float>(step.value());
  const float left = row.bars + scale * static_cast<float>(term.before.value());
  const float right = std::max(left + 1, left + scale * static_cast<float>(term.time.value()));
  const Rect whole{{row.label - ui.px(4), row.top}, {row.value + ui.px(4), row.top + row.height}};
  const bool is_under =
      ImGui::IsMouseHoveringRect(whole.min, whole.max) && ImGui::IsWindowHovered();
  if (is_under) fill(ui, whole, ui.colors.raised, ui.px(3));
  const float text_y = row.top + (row.height - ui.fonts.small->FontSize) / 2 - 1;
  put_text(ui, ui.fonts.small, {row.label, text_y}, ui.colors.text, term.name);
  const auto kind = static_cast<std::size_t>(term.kind);
  const float inset = std::max(1.0F, row.height * 0.16F);
  fill(ui, {{left, row.top + inset}, {right, row.top + row.height - inset}}, ui.colors.term[kind],
       ui.px(2));
  put_text(ui, ui.fonts.small, {row.value, text_y}, ui.colors.dim,
           fmt::format("{:.1f} %", 100 * (term.time / step)), Align::kRight);
  put_text(ui, ui.fonts.small, {row.value - ui.px(50), text_y}, ui.colors.text,
           time_text(term.time), Align::kRight);
  note_area(
      ui, term.term == nullptr ? "smaller terms" : fmt::format("term {}", name_of(term.term->kind)),
      whole);
  if (is_under) tooltip(ui, explanation_of(term, view).c_str());
}

struct Tab {
  DetailTab id;
  const char* title;
  const char* help;
};
constexpr std::array<Tab, 3> kTabs = {
    {{DetailTab::kBreakdown, "Breakdown",
      "Every term of plan A's step with its formula and source."},
     {DetailTab::kDifferences, "A and B",
      "The terms that make plan B faster or slower than plan A."},
     {DetailTab::kMeasured, "Measured",
      "Predicted and measured step times of a validation report."}}};

float tabs_width(const Ui& ui) {
  float width = 0;
  for (const Tab& tab : kTabs) width += text_size(ui.fonts.small, tab.title).x + ui.px(20);
  return width;
}

void draw_tabs(Ui& ui, Rect rect) {
  ImGui::PushFont(ui.fonts.small);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(2)));
  float x = rect.max.x;
  for (std::size_t i = kTabs.size(); i-- > 0;) {
    x -= text_size(ui.fonts.small, kTabs[i].title).x + ui.px(20);
    ImGui::SetCursorScreenPos({x, rect.min.y - ui.px(26)});
    if (button(ui, kTabs[i].title, kTabs[i].help, ui.state.detail == kTabs[i].id)) {
      ui.state.detail = kTabs[i].id;
    }
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

}  // namespace

void draw_breakdown(Ui& ui, Rect rect, const PlanView& view) {
  const float legend = ui.fonts.small->FontSize + ui.px(8);
  const float least = std::max(ui.fonts.small->FontSize - ui.px(1), ui.px(11));
  const auto most = static_cast<std::size_t>(std::max(1.0F, (rect.height() - legend) / least));
  const std::vector<BreakdownRow> terms = breakdown_rows(view.predicted, most);
  const float each =
      std::min(ui.px(22), (rect.height() - legend) /
                              static_cast<float>(std::max<std::size_t>(1, terms.size())));
  WaterfallRow row;
  row.height = std::floor(each);
  row.label = rect.min.x;
  row.bars = rect.min.x + ui.px(134);
  row.value = rect.max.x;
  row.bars_end = rect.max.x - ui.px(112);
  row.top = rect.min.y;
  for (const BreakdownRow& term : terms) {
    draw_term(ui, row, term, view);
    row.top += row.height;
  }
  ImVec2 at{rect.min.x, rect.max.y - ui.fonts.small->FontSize - ui.px(1)};
  for (int i = 0; i < kTermClassCount; ++i) {
    at.x = legend_entry(ui, at, ui.colors.term[static_cast<std::size_t>(i)],
                        name_of(static_cast<TermClass>(i)));
  }
}

void draw_differences(Ui& ui, Rect rect, const PlanView& a, const PlanView& b) {
  const float letter = ui.fonts.small->FontSize;
  ImVec2 at = rect.min;
  put_text(ui, ui.fonts.bold, at, ui.colors.text,
           fitted(ui.fonts.bold, summary_of(a, b), rect.width()));
  at.y += ui.fonts.bold->FontSize + ui.px(4);
  put_text(ui, ui.fonts.small, at, ui.colors.dim,
           fitted(ui.fonts.small, settings_difference(a.plan, b.plan), rect.width()));
  at.y += letter + ui.px(7);
  const float height = ui.px(18);
  const auto rows = static_cast<std::size_t>(std::max(1.0F, (rect.max.y - at.y) / height));
  const std::vector<TermDifference> terms = largest_differences(a.predicted, b.predicted, rows);
  Seconds most(1e-12);
  for (const TermDifference& term : terms) {
    most = std::max(most, Seconds(std::abs(term.difference().value())));
  }
  const float middle = rect.min.x + ui.px(150) + (rect.width() - ui.px(220)) / 2;
  const float half = (rect.width() - ui.px(220)) / 2;
  line(ui, {middle, at.y}, {middle, rect.max.y}, ui.colors.line);
  for (const TermDifference& term : terms) {
    const float length = half * static_cast<float>(term.difference() / most);
    const Rgba color = length > 0 ? ui.colors.other : ui.colors.accent;
    fill(ui,
         {{std::min(middle, middle + length), at.y + ui.px(3)},
          {std::max(middle, middle + length), at.y + height - ui.px(3)}},
         color, ui.px(2));
    put_text(ui, ui.fonts.small, {rect.min.x, at.y + ui.px(2)}, ui.colors.text, plain(term.name));
    put_text(ui, ui.fonts.small, {rect.max.x, at.y + ui.px(2)}, ui.colors.text,
             fmt::format("{}{}", term.difference().value() > 0 ? "+" : "−",
                         time_text(Seconds(std::abs(term.difference().value())))),
             Align::kRight);
    at.y += height;
  }
}

void draw_details(Ui& ui, Rect rect) {
  const auto draw = [&](Rect body) {
    draw_tabs(ui, body);
    if (ui.state.detail == DetailTab::kMeasured) return draw_measured(ui, body);
    if (!ui.views.a) return no_plan_state(ui, body);
    if (ui.views.a->error) return no_prediction(ui, body);
    if (ui.state.detail == DetailTab::kBreakdown) return draw_breakdown(ui, body, *ui.views.a);
    if (!ui.views.b || ui.views.b->error) {
      return empty_state(ui, body, "There is no plan B to compare with",
                         "Press Pin as B to keep the selected plan, then select another one.");
    }
    draw_differences(ui, body, *ui.views.a, *ui.views.b);
  };
  card(ui, "Step time", rect, "", draw, tabs_width(ui) + ui.px(4));
}

}  // namespace tpsim::gui

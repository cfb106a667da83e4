// The plan table: all plans found, sortable and filterable. Plans that tie with the best are
// marked.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "core/base/numbers.h"
#include "core/base/text.h"
#include "gui/panels/panels.h"
#include "gui/panels/shown_table.h"

namespace tpsim::gui {
namespace {

constexpr float kFilterWidth = 190, kStopWidth = 74;

// Draws a right-aligned number, or "…" if it does not fit, because a number with missing digits
// would mislead.
void draw_number(const Ui& ui, ImFont* font, Rgba color, const std::string& text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const bool fits = text_size(font, text).x <= width + 0.5F;
  put_text(ui, font, {at.x + width, at.y}, color, fits ? text : "…", Align::kRight);
  ImGui::Dummy({1, font->FontSize});
}

Rgba chance_color(const Ui& ui, double p_oom) {
  return p_oom >= 0.2 ? ui.colors.bad : p_oom >= 0.05 ? ui.colors.warn : ui.colors.dim;
}

// Draws the number of variants of a layout as a button that expands or collapses the layout.
void draw_variants(Ui& ui, const ShownTable& table, const TableRow& row, const std::string& text) {
  if (row.variants < 2) return draw_number(ui, ui.fonts.body, ui.colors.dim, text);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::PushID(static_cast<int>(row.plan));
  const bool clicked =
      ImGui::InvisibleButton("variants", {std::max(width, 1.0F), ui.fonts.body->FontSize});
  ImGui::PopID();
  note_item(ui, fmt::format("variants {}", row.layout + 1));
  hover_help(ui, "Show or hide the other plans with these degrees.");
  ImGui::SetCursorScreenPos(at);
  draw_number(ui, ui.fonts.body, ui.colors.accent, text);
  if (!clicked) return;
  std::set<ParallelDegrees>& opened = ui.state.table.opened;
  const ParallelDegrees& key = table.groups[row.layout].key;
  if (opened.erase(key) == 0) opened.insert(key);
}

void draw_row(Ui& ui, const ShownTable& table, const TableRow& row) {
  const PlannedRun& run = ui.views.found.plans[row.plan];
  const bool is_chosen = ui.views.a && ui.views.a->plan == run.plan;
  const bool is_other = ui.views.b && ui.views.b->plan == run.plan;
  ImGui::TableNextRow();
  ImGui::TableSetColumnIndex(0);
  ImGui::PushID(static_cast<int>(row.plan));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (ImGui::Selectable(
          "##row", is_chosen,
          ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowItemOverlap)) {
    ui.state.plan = run.plan;
  }
  note_item(ui, fmt::format("plan {}", row.plan + 1));
  const Rect area{ImGui::GetItemRectMin(), ImGui::GetItemRectMax()};
  if (row.variants > 0) note_area(ui, fmt::format("layout {}", row.layout + 1), area);
  if (is_chosen || is_other) {
    fill(ui, {area.min, {area.min.x + ui.px(3), area.max.y}},
         is_chosen ? ui.colors.accent : ui.colors.other);
  }
  ImGui::PopID();
  ImGui::SetCursorScreenPos(at);
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    ImGui::TableSetColumnIndex(static_cast<int>(c));
    const TableColumn& column = *table.columns[c];
    const std::string text = text_in(ui, table, row, column.id);
    ImFont* font =
        row.plan == 0 && column.id == TableColumnId::kStep ? ui.fonts.bold : ui.fonts.body;
    const Rgba color = column.id == TableColumnId::kOom ? chance_color(ui, run.predicted.p_oom)
                       : row.variants > 0               ? ui.colors.text
                                                        : ui.colors.dim;
    if (column.id == TableColumnId::kVariants) {
      draw_variants(ui, table, row, text);
    } else if (column.is_number) {
      draw_number(ui, font, color, text);
    } else {
      const float width = ImGui::GetContentRegionAvail().x;
      put_text(ui, font, ImGui::GetCursorScreenPos(), color, fitted(font, text, width));
    }
  }
}

void draw_headers(Ui& ui, const ShownTable& shown) {
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (std::size_t c = 0; c < shown.columns.size(); ++c) {
    ImGui::TableSetColumnIndex(static_cast<int>(c));
    const TableColumn& column = *shown.columns[c];
    ImGui::PushID(static_cast<int>(column.id));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    if (ImGui::Selectable("##head", false, 0, {width, ui.fonts.small->FontSize + ui.px(3)})) {
      TableState& table = ui.state.table;
      table.ascending = table.sorted_by == column.id ? !table.ascending : true;
      table.sorted_by = column.id;
    }
    note_item(ui, std::string("sort by ") + column.title);
    hover_help(ui, column.help);
    const bool sorts = ui.state.table.sorted_by == column.id;
    const std::string mark = !sorts ? "" : ui.state.table.ascending ? " ▲" : " ▼";
    const Rgba color = sorts ? ui.colors.text : ui.colors.dim;
    const float x = column.is_number ? at.x + width : at.x;
    put_text(ui, ui.fonts.small, {x, at.y + ui.px(1)}, color, title_of(column, shown) + mark,
             column.is_number ? Align::kRight : Align::kLeft);
    ImGui::PopID();
  }
}

void draw_filter(Ui& ui, Rect rect) {
  const float width = ui.px(kFilterWidth);
  ImGui::SetCursorScreenPos({rect.max.x - width, rect.min.y - ui.px(27)});
  ImGui::SetNextItemWidth(width);
  std::array<char, 128> text{};
  ui.state.table.filter.copy(text.data(), text.size() - 1);
  ImGui::PushFont(ui.fonts.small);
  if (ImGui::InputTextWithHint("##filter", "filter: tp=4 mb<=2 flash", text.data(), text.size())) {
    ui.state.table.filter = text.data();
  }
  ImGui::PopFont();
  note_item(ui, "filter plans");
  const std::string unknown = unknown_filter_word(ui.state.table.filter);
  const std::string help =
      unknown.empty()
          ? "Conditions that every plan shown satisfies: tp=4, pp>8, mb<=2, step<100, gib<70, "
            "zero=1, or "
            "none, selective, full, flash, unfused, sp, no-sp, gpipe, 1f1b, interleaved, zb-h1."
          : "'" + unknown +
                "' is not a condition of the filter and is ignored. Try tp=4, mb<=2, "
                "step<100, gib<70, flash, full, sp.";
  hover_help(ui, help.c_str());
}

// Returns an id that depends on the column widths, because ImGui stores a table's widths by its id.
std::string table_id(const ShownTable& table) {
  std::string name = "plans";
  for (const float width : table.widths) name += fmt::format(" {}", width);
  return name;
}

void draw_table(Ui& ui, Rect rect, const ShownTable& table) {
  ImGui::SetCursorScreenPos({rect.min.x - ui.px(6), rect.min.y});
  // The height is a whole number of rows. The remaining height is distributed as padding.
  const float head = ui.fonts.small->FontSize + ui.px(3), letter = ui.fonts.body->FontSize;
  const float least = ui.px(2.5F);
  const float rows = std::max(1.0F, std::floor((rect.height() - head - least) / (letter + least)));
  const float padding =
      std::floor(std::max(least, (rect.height() - head - rows * letter) / (rows + 1))) / 2;
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(ui.px(4), padding));
  // Item spacing equals the row padding, so that the highlight of a selected row covers exactly
  // this row.
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ui.px(8), 2 * padding));
  const float height = head + 2 * padding + rows * (letter + 2 * padding);
  const ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingStretchProp |
                                ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_PadOuterX;
  if (ImGui::BeginTable(table_id(table).c_str(), static_cast<int>(table.columns.size()), flags,
                        {rect.width() + ui.px(12), height})) {
    ImGui::TableSetupScrollFreeze(0, 1);
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      ImGui::TableSetupColumn(table.columns[c]->title, ImGuiTableColumnFlags_WidthStretch,
                              table.widths[c]);
    }
    draw_headers(ui, table);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(table.rows.size()));
    while (clipper.Step()) {
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        draw_row(ui, table, table.rows[static_cast<std::size_t>(i)]);
      }
    }
    ImGui::EndTable();
  }
  ImGui::PopStyleVar(2);
}

// Whether the search can be stopped or started again.
bool has_stop(const Ui& ui) { return ui.views.is_searching || ui.views.is_stopped; }

// Draws a button with the progress of the search, which stops the search or starts it again.
void draw_stop(Ui& ui, Rect body) {
  if (!has_stop(ui)) return;
  const std::string text = ui.views.is_searching
                               ? fmt::format("Stop {:.0f} %", std::floor(100 * ui.views.progress))
                               : "Search";
  const bool has_filter = !ui.views.found.plans.empty();
  const float right = body.max.x - ui.px(has_filter ? kFilterWidth + 6 : 0);
  ImGui::SetCursorScreenPos({right - ui.px(kStopWidth), body.min.y - ui.px(27)});
  ImGui::PushFont(ui.fonts.small);
  ImGui::PushID("search");
  const bool pressed =
      ImGui::Button(text.c_str(), {ui.px(kStopWidth), ui.fonts.small->FontSize + ui.px(8)});
  ImGui::PopID();
  ImGui::PopFont();
  note_item(ui, ui.views.is_searching ? "Stop" : "Search");
  hover_help(ui, ui.views.is_searching ? "Stop the search and keep the plans found so far."
                                       : "Search again from the beginning.");
  if (pressed) {
    ui.requests.push_back(ui.views.is_searching ? Request::kStopSearch : Request::kSearch);
  }
}

// Draws the counts: "12 layouts · 431 plans of 65,536", or "12 layouts · 431 plans · 2 columns
// hidden". Clauses that do not fit are left out. A tooltip has all of them, and names the columns.
void draw_count(Ui& ui, Rect body, const ShownTable& table) {
  std::int64_t plans = 0;
  for (const LayoutGroup& group : table.groups) plans += std::ssize(group.variants);
  std::string text = fmt::format("{} · {}", counted_text(std::ssize(table.groups), "layout"),
                                 counted_text(plans, "plan"));
  std::string whole = text + " of " + count_text(ui.views.found.considered);
  if (table.hidden.empty()) {
    text = whole;
  } else {
    text += fmt::format(" · {} hidden", counted_text(std::ssize(table.hidden), "column"));
    whole += fmt::format(" · no room for {}", fmt::join(table.hidden, ", "));
  }
  const std::string unknown = unknown_filter_word(ui.state.table.filter);
  if (!unknown.empty()) {
    text = whole = fmt::format("'{}' is not a condition and is ignored", unknown);
  }
  if (ui.views.is_stopped) text = "search stopped · " + text;
  const ImVec2 at{body.min.x + ui.px(52), body.min.y - ui.px(22.5F)};
  const float stop = has_stop(ui) ? kStopWidth + 6 : 0;
  const float room = body.max.x - ui.px(kFilterWidth + stop + 10) - at.x;
  if (room < ui.px(20)) return;
  put_text(ui, ui.fonts.small, at, unknown.empty() ? ui.colors.dim : ui.colors.warn,
           leading_clauses(ui.fonts.small, text, room));
  const Rect area{at, {at.x + room, at.y + ui.fonts.small->FontSize}};
  note_area(ui, "count of plans", area);
  if (ImGui::IsMouseHoveringRect(area.min, area.max) && ImGui::IsWindowHovered()) {
    tooltip(ui, whole.c_str());
  }
}

// Draws the reason why the table is empty.
void draw_nothing(Ui& ui, Rect rect) {
  const Findings& found = ui.views.found;
  if (ui.views.is_stopped) {
    return empty_state(ui, rect, "The search was stopped", "Press Search to start it again.");
  }
  if (ui.views.error) {
    return empty_state(ui, rect, "There is nothing to search", "The message above says why.");
  }
  if (!found.has_best || ui.views.is_stale) {
    return empty_state(ui, rect, "Searching…", "The plans appear as soon as they are known.");
  }
  if (found.error) {
    return empty_state(ui, rect, "There is nothing to search: " + found.error->message,
                       found.error->hint);
  }
  if (found.nearest_miss) {
    const Prediction& miss = found.nearest_miss->predicted;
    return empty_state(
        ui, rect,
        fmt::format("No plan fits. The closest plan needs {} of {} GiB", gib_text(miss.peak),
                    gib_text(miss.capacity)),
        "The other panels show this plan. More GPUs, a smaller global batch, or a cluster whose "
        "GPUs have more memory would help.");
  }
  std::string reason;
  std::int64_t most = 0;
  for (const auto& [why, count] : found.pruned) {
    if (count > most) most = count, reason = why;
  }
  empty_state(ui, rect, "No plan is possible",
              fmt::format("Most frequent reason: {}. Try another stack (left, below), another "
                          "number of GPUs or another global batch.",
                          reason.empty() ? "unknown" : reason));
}

}  // namespace

void draw_plans(Ui& ui, Rect rect) {
  card(ui, "Plans", rect, "", [&](Rect body) {
    draw_stop(ui, body);
    if (ui.views.found.plans.empty()) return draw_nothing(ui, body);
    const float scrollbar = ImGui::GetStyle().ScrollbarSize;
    const ShownTable& table = ui.table_cache.table(ui, body.width() + ui.px(4) - scrollbar);
    draw_count(ui, body, table);
    draw_filter(ui, body);
    if (table.rows.empty()) {
      return empty_state(ui, body, "No plan passes the filter",
                         "Remove a condition from the filter, or clear it.");
    }
    draw_table(ui, body, table);
    if (ui.views.is_stale) fill(ui, body, with_alpha(ui.colors.panel, 0.55));
  });
}

}  // namespace tpsim::gui

// Rows of the plan panel: a label with a slider, segments or a list of values.
#include <algorithm>
#include <cmath>

#include "gui/panels/ui.h"

namespace tpsim::gui {
namespace {

constexpr float kLabelShare = 0.48F;  // width of the label in a row of the sidebar

// Draws the label of a row and moves the cursor to the start of the control. Returns the width of
// the control. A row whose value was adjusted by another change is marked.
float begin_row(Ui& ui, const char* label, const char* help, const std::string& before) {
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = ImGui::GetFrameHeight();
  const float text_y = at.y + (height - ui.fonts.body->FontSize) / 2;
  const bool is_moved = !before.empty();
  const float room = width * kLabelShare - ui.px(4);
  ImFont* const font = text_size(ui.fonts.body, label).x <= room ? ui.fonts.body : ui.fonts.small;
  put_text(ui, font, {at.x, text_y}, is_moved ? ui.colors.warn : ui.colors.dim,
           fitted(font, label, room));
  if (is_moved) {
    const Rect mark{{at.x - ui.px(8), at.y}, {at.x - ui.px(5), at.y + height}};
    fill(ui, mark, ui.colors.warn);
    note_area(ui, std::string("moved ") + label, mark);
  }
  const Rect area{at, {at.x + width * kLabelShare, at.y + height}};
  if (ImGui::IsMouseHoveringRect(area.min, area.max) && ImGui::IsWindowHovered()) {
    tooltip(
        ui,
        is_moved
            ? ("Adjusted by the last change. The value before was " + before + ".\n" + help).c_str()
            : help);
  }
  const float control = std::round(width * kLabelShare);
  ImGui::SetCursorScreenPos({at.x + control, at.y});
  return width - control;
}

// Shows why ImGui's last item, a refused value, cannot be selected.
void hover_refusal(const Ui& ui, const KnobValue& value) {
  if (value.refusal.empty()) return;
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) return;
  tooltip(ui, ("Not possible: " + value.refusal).c_str());
}

// Returns the number of lines of segments in which every text fits, or one segment per line.
int segment_lines(const Ui& ui, std::span<const KnobValue> values, float width) {
  const int count = static_cast<int>(values.size());
  float widest = 0;
  for (const KnobValue& value : values) {
    widest = std::max(widest, text_size(ui.fonts.body, value.text).x);
  }
  for (int lines = 1; lines < count; ++lines) {
    const int per_line = (count + lines - 1) / lines;
    if (widest + ui.px(2) <= std::floor(width / static_cast<float>(per_line))) return lines;
  }
  return count;
}

}  // namespace

bool slider_row(Ui& ui, const SliderRow& row, int& stop) {
  const float width = begin_row(ui, row.label, row.help, row.before);
  const int most = static_cast<int>(row.texts.size()) - 1;
  ImGui::SetNextItemWidth(width);
  ImGui::PushID(row.label);
  int next = std::clamp(stop, 0, std::max(0, most));
  const char* shown = row.texts.empty() ? "–" : row.texts[static_cast<std::size_t>(next)].c_str();
  // A slider with a single legal value is disabled.
  ImGui::BeginDisabled(most < 1);
  ImGui::PushFont(ui.fonts.bold);
  // Doubles each %, because ImGui would read it as a format specifier.
  std::string format;
  for (const char* c = shown; *c != '\0'; ++c) format += *c == '%' ? "%%" : std::string(1, *c);
  const bool moved = ImGui::SliderInt("##slider", &next, 0, std::max(0, most), format.c_str(),
                                      ImGuiSliderFlags_NoInput);
  ImGui::PopFont();
  ImGui::EndDisabled();
  note_item(ui, row.label);
  hover_help(ui, row.help);
  ImGui::PopID();
  if (!moved || next == stop || next > most) return false;
  stop = next;
  return true;
}

bool segment_row(Ui& ui, const SegmentRow& row, int& chosen) {
  const float width = begin_row(ui, row.label, row.help, row.before);
  const int count = static_cast<int>(row.values.size());
  const int lines = segment_lines(ui, row.values, width);
  const int per_line = (count + lines - 1) / lines;
  const float each = std::floor(width / static_cast<float>(per_line));
  const float height = ImGui::GetFrameHeight();
  const ImVec2 start = ImGui::GetCursorScreenPos();
  fill(ui, {start, {start.x + width, start.y + height * static_cast<float>(lines)}},
       ui.colors.raised, ui.px(4));
  bool changed = false;
  ImGui::PushID(row.label);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(0, ImGui::GetStyle().FramePadding.y));
  for (int i = 0; i < count; ++i) {
    const bool is_on = i == chosen;
    const int line_of = i / per_line, place = i % per_line;
    ImGui::SetCursorScreenPos({start.x + each * static_cast<float>(place),
                               start.y + height * static_cast<float>(line_of)});
    ImGui::PushStyleColor(ImGuiCol_Button,
                          vec(is_on ? ui.colors.accent : with_alpha(ui.colors.raised, 0)));
    if (is_on) ImGui::PushStyleColor(ImGuiCol_ButtonHovered, vec(ui.colors.accent));
    ImGui::PushStyleColor(ImGuiCol_Text, vec(is_on ? ui.colors.on_accent : ui.colors.text));
    const KnobValue& value = row.values[static_cast<std::size_t>(i)];
    ImGui::PushID(i);
    ImGui::BeginDisabled(!value.refusal.empty());
    if (ImGui::Button(fitted(ImGui::GetFont(), value.text, each).c_str(), {each, 0}) && !is_on) {
      chosen = i;
      changed = true;
    }
    ImGui::EndDisabled();
    ImGui::PopID();
    ImGui::PopStyleColor(is_on ? 3 : 2);
    note_item(ui, std::string(row.label) + "=" + value.text);
    if (value.refusal.empty()) hover_help(ui, row.help);
    hover_refusal(ui, value);
  }
  ImGui::PopStyleVar();
  ImGui::PopID();
  return changed;
}

bool combo_row(Ui& ui, const ComboRow& row, KnobValue& chosen) {
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float text_y = at.y + (ImGui::GetFrameHeight() - ui.fonts.body->FontSize) / 2;
  bool changed = false;
  ImGui::SetNextItemWidth(width);
  ImGui::PushID(row.label);
  const bool is_open =
      ImGui::BeginCombo("##combo", "", ImGuiComboFlags_HeightLarge | ImGuiComboFlags_NoArrowButton);
  if (!is_open) {
    note_item(ui, row.label);
    hover_help(ui, row.help);
  } else {
    for (const KnobValue& value : row.values()) {
      ImGui::BeginDisabled(!value.refusal.empty());
      if (ImGui::Selectable(value.text.c_str(), value.text == row.shown)) {
        chosen = value;
        changed = true;
      }
      ImGui::EndDisabled();
      note_item(ui, std::string(row.label) + "=" + value.text);
      hover_refusal(ui, value);
    }
    ImGui::EndCombo();
  }
  ImGui::PopID();
  const float arrow = put_text(ui, ui.fonts.small, {at.x + width - ui.px(6), text_y + ui.px(1)},
                               ui.colors.dim, "▼", Align::kRight);
  ImFont* const font = row.is_changed ? ui.fonts.bold : ui.fonts.body;
  const float right = at.x + width - ui.px(12) - arrow;
  const float room = right - at.x - ui.px(20);
  const float label = std::min(text_size(ui.fonts.body, row.label).x, room * 0.62F);
  const std::string shown = leading_clauses(font, row.shown, room - label);
  put_text(ui, ui.fonts.body, {at.x + ui.px(8), text_y}, ui.colors.dim,
           fitted(ui.fonts.body, row.label, room - text_size(font, shown).x));
  put_text(ui, font, {right, text_y}, ui.colors.text, shown, Align::kRight);
  return changed;
}

}  // namespace tpsim::gui

#include "gui/panels/ui.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace tpsim::gui {

ImVec2 text_size(ImFont* font, std::string_view text) {
  return font->CalcTextSizeA(font->FontSize, FLT_MAX, 0, text.data(), text.data() + text.size());
}

float put_text(const Ui& ui, ImFont* font, ImVec2 at, Rgba color, std::string_view text,
               Align align) {
  const float width = text_size(font, text).x;
  if (align == Align::kCenter) at.x -= width / 2;
  if (align == Align::kRight) at.x -= width;
  const ImVec2 snapped{std::round(at.x), std::round(at.y)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddText(font, font->FontSize, snapped, ui.ink(color), text.data(),
                text.data() + text.size());
  return width;
}

std::string fitted(ImFont* font, std::string_view text, float width) {
  if (text_size(font, text).x <= width) return std::string(text);
  std::string shortened(text);
  while (!shortened.empty()) {
    // Removes one whole UTF-8 character.
    while (!shortened.empty() && (static_cast<unsigned char>(shortened.back()) & 0xC0) == 0x80) {
      shortened.pop_back();
    }
    if (!shortened.empty()) shortened.pop_back();
    if (text_size(font, shortened + "…").x <= width) break;
  }
  return shortened + "…";
}

std::string leading_clauses(ImFont* font, std::string_view text, float width) {
  constexpr std::string_view kBetween = " · ";
  while (text_size(font, text).x > width) {
    const std::size_t end = text.rfind(kBetween);
    if (end == std::string_view::npos) return fitted(font, text, width);
    text = text.substr(0, end);
  }
  return std::string(text);
}

std::vector<std::string> wrapped_lines(ImFont* font, std::string_view text, float width) {
  // A unit stays on the line of its number.
  const auto is_unit = [](std::string_view word) {
    constexpr std::array<std::string_view, 7> kUnits = {"%",   "s",    "ms",    "GiB",
                                                        "USD", "days", "tokens"};
    while (!word.empty() && std::string_view(".,;:)").find(word.back()) != std::string_view::npos) {
      word.remove_suffix(1);
    }
    return std::find(kUnits.begin(), kUnits.end(), word) != kUnits.end();
  };
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    // The next piece: a word with its unit.
    std::size_t end = std::min(text.find(' ', at), text.size());
    while (end < text.size()) {
      const std::size_t next = std::min(text.find(' ', end + 1), text.size());
      if (!is_unit(text.substr(end + 1, next - end - 1))) break;
      end = next;
    }
    const std::string piece(text.substr(at, end - at));
    std::string longer = line;
    if (!longer.empty()) longer += ' ';
    longer += piece;
    if (!line.empty() && text_size(font, longer).x > width) {
      lines.push_back(std::exchange(line, piece));
    } else {
      line = longer;
    }
    at = end + 1;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

void fill(const Ui& ui, Rect rect, Rgba color, float rounding) {
  ImGui::GetWindowDrawList()->AddRectFilled(rect.min, rect.max, ui.ink(color), rounding);
}

void outline(const Ui& ui, Rect rect, Rgba color, float rounding, float thickness) {
  ImGui::GetWindowDrawList()->AddRect(rect.min, rect.max, ui.ink(color), rounding, 0, thickness);
}

void line(const Ui& ui, ImVec2 from, ImVec2 to, Rgba color, float thickness) {
  ImGui::GetWindowDrawList()->AddLine(from, to, ui.ink(color), thickness);
}

void card(Ui& ui, const char* title, Rect rect, const std::string& note,
          const std::function<void(Rect)>& body, float controls) {
  ImGui::SetCursorScreenPos(rect.min);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  ImGui::BeginChild(title, {rect.width(), rect.height()}, false,
                    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  fill(ui, rect, ui.colors.panel, ui.px(6));
  const float pad = ui.px(12);
  const float title_y = rect.min.y + ui.px(9);
  const std::string shown = fitted(ui.fonts.bold, title, rect.width() - 2 * pad - controls);
  const float width =
      put_text(ui, ui.fonts.bold, {rect.min.x + pad, title_y}, ui.colors.text, shown);
  const float room = rect.width() - width - 3 * pad;
  if (!note.empty() && room > ui.px(40)) {
    put_text(ui, ui.fonts.small, {rect.max.x - pad, title_y + ui.px(1.5F)}, ui.colors.dim,
             leading_clauses(ui.fonts.small, note, room), Align::kRight);
  }
  note_area(ui, title, rect);
  body({{rect.min.x + pad, rect.min.y + ui.px(33)}, {rect.max.x - pad, rect.max.y - ui.px(9)}});
  ImGui::EndChild();
  ImGui::PopStyleVar();
}

void note_item(Ui& ui, std::string_view label) {
  note_area(ui, label, {ImGui::GetItemRectMin(), ImGui::GetItemRectMax()});
  add_last_item(ui.stops, label);
}

void note_area(Ui& ui, std::string_view label, Rect rect) {
  ui.items.insert_or_assign(std::string(label), rect);
}

namespace {

// Returns the width at which a tooltip's lines break: the first at which the text is lower than the
// window.
float tooltip_width(const Ui& ui, const char* text) {
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  const float widest = screen.x - ui.px(40);
  float width = std::min(ui.px(320), widest);
  while (width < widest &&
         ImGui::CalcTextSize(text, nullptr, false, width).y > screen.y - ui.px(40)) {
    width = std::min(widest, width + ui.px(80));
  }
  return width;
}

}  // namespace

void tooltip(const Ui& ui, const char* text) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(ui.px(10), ui.px(8)));
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(tooltip_width(ui, text));
  ImGui::TextUnformatted(text);
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
  ImGui::PopStyleVar();
}

void hover_help(const Ui& ui, const char* text) {
  if (text != nullptr && *text != '\0' && ImGui::IsItemHovered()) tooltip(ui, text);
}

bool button(Ui& ui, const char* label, const char* help, bool is_on) {
  if (is_on) {
    ImGui::PushStyleColor(ImGuiCol_Button, vec(ui.colors.accent));
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, vec(ui.colors.accent));
    ImGui::PushStyleColor(ImGuiCol_Text, vec(ui.colors.on_accent));
  }
  const bool pressed = ImGui::Button(label);
  if (is_on) ImGui::PopStyleColor(3);
  note_item(ui, label);
  hover_help(ui, help);
  return pressed;
}

float plan_chip(const Ui& ui, ImVec2 at, Rgba color, const char* name, Align align) {
  ImFont* const font = ui.fonts.small;
  const float width = text_size(font, name).x + ui.px(8), height = font->FontSize + ui.px(1);
  if (align == Align::kRight) at.x -= width;
  fill(ui, {at, {at.x + width, at.y + height}}, color, ui.px(3));
  put_text(ui, font, {at.x + width / 2, at.y}, ui.colors.on_accent, name, Align::kCenter);
  return width;
}

void no_plan_state(const Ui& ui, Rect rect) {
  if (ui.views.is_searching) {
    return empty_state(ui, rect, "Searching…", "The plans appear as soon as they are known.");
  }
  empty_state(ui, rect, "No plan yet", "The plan table shows why.");
}

void empty_state(const Ui& ui, Rect rect, const std::string& what, const std::string& remedy) {
  const float width = std::min(rect.width() - ui.px(24), ui.px(460));
  const auto wrapped_height = [&](ImFont* font, const std::string& text) {
    return font
        ->CalcTextSizeA(font->FontSize, FLT_MAX, width, text.data(), text.data() + text.size())
        .y;
  };
  const float gap = ui.px(6);
  const float height =
      wrapped_height(ui.fonts.bold, what) + gap + wrapped_height(ui.fonts.body, remedy);
  ImVec2 at{std::round(rect.center().x - width / 2), std::round(rect.center().y - height / 2)};
  const auto put = [&](ImFont* font, Rgba color, const std::string& text) {
    ImGui::GetWindowDrawList()->AddText(font, font->FontSize, at, ui.ink(color), text.data(),
                                        text.data() + text.size(), width);
    at.y += wrapped_height(font, text) + gap;
  };
  put(ui.fonts.bold, ui.colors.text, what);
  put(ui.fonts.body, ui.colors.dim, remedy);
}

void no_prediction(const Ui& ui, Rect rect) {
  empty_state(ui, rect, "No prediction", "The headline above the panels shows the reason.");
}

float legend_entry(const Ui& ui, ImVec2 at, Rgba color, std::string_view name) {
  const float side = ui.px(9);
  const float top = at.y + (ui.fonts.small->FontSize - side) / 2 + ui.px(0.5F);
  fill(ui, {{at.x, top}, {at.x + side, top + side}}, color, ui.px(2));
  const float text_x = at.x + side + ui.px(5);
  return text_x + put_text(ui, ui.fonts.small, {text_x, at.y}, ui.colors.dim, name) + ui.px(12);
}

void apply_style(Theme theme, float scale) {
  const Palette& p = palette_of(theme);
  ImGuiStyle style;
  style.WindowRounding = style.ChildRounding = 0;
  style.FrameRounding = style.GrabRounding = style.PopupRounding = 4;
  style.FramePadding = {8, 4};
  style.ItemSpacing = {8, 6};
  style.CellPadding = {6, 2};
  style.ScrollbarSize = 11;
  style.GrabMinSize = 14;
  style.WindowBorderSize = 0;
  style.PopupBorderSize = 1;
  style.DisabledAlpha = static_cast<float>(kDisabledAlpha);
  style.ScaleAllSizes(scale);
  const auto set = [&](ImGuiCol which, Rgba color) { style.Colors[which] = vec(color); };
  set(ImGuiCol_Text, p.text), set(ImGuiCol_TextDisabled, p.faint);
  set(ImGuiCol_WindowBg, p.window), set(ImGuiCol_ChildBg, with_alpha(p.panel, 0));
  set(ImGuiCol_PopupBg, p.panel), set(ImGuiCol_Border, p.line);
  set(ImGuiCol_FrameBg, p.raised), set(ImGuiCol_FrameBgHovered, mix(p.raised, p.line, 0.5));
  set(ImGuiCol_FrameBgActive, mix(p.raised, p.line, 0.8));
  set(ImGuiCol_SliderGrab, mix(p.raised, p.accent, 0.45));
  set(ImGuiCol_SliderGrabActive, mix(p.raised, p.accent, 0.6));
  set(ImGuiCol_Button, p.raised), set(ImGuiCol_ButtonHovered, mix(p.raised, p.line, 0.6));
  set(ImGuiCol_ButtonActive, p.line), set(ImGuiCol_CheckMark, p.accent);
  set(ImGuiCol_Header, mix(p.panel, p.accent, 0.12));
  set(ImGuiCol_HeaderHovered, p.raised), set(ImGuiCol_HeaderActive, p.line);
  set(ImGuiCol_Separator, p.line), set(ImGuiCol_NavHighlight, p.accent);
  set(ImGuiCol_TableHeaderBg, p.panel), set(ImGuiCol_TableBorderLight, p.grid);
  set(ImGuiCol_TableBorderStrong, p.line), set(ImGuiCol_TableRowBg, with_alpha(p.panel, 0));
  set(ImGuiCol_TableRowBgAlt, with_alpha(p.panel, 0));
  set(ImGuiCol_ScrollbarBg, with_alpha(p.panel, 0)), set(ImGuiCol_ScrollbarGrab, p.line);
  set(ImGuiCol_ScrollbarGrabHovered, p.mark), set(ImGuiCol_ScrollbarGrabActive, p.mark);
  set(ImGuiCol_TextSelectedBg, mix(p.panel, p.accent, 0.35));
  set(ImGuiCol_ModalWindowDimBg, Rgba{0, 0, 0, 90});
  ImGui::GetStyle() = style;
}

}  // namespace tpsim::gui

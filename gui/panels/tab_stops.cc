#include "gui/panels/tab_stops.h"

#include <imgui_internal.h>

#include <algorithm>

namespace tpsim::gui {
namespace {

constexpr int kTab = 258;  // GLFW's key number

// Moves the focus to a control. The text of a text field can be edited immediately.
void focus(const TabStop& stop) {
  ImGuiContext& g = *ImGui::GetCurrentContext();
  ImGui::ClearActiveID();
  if (g.NavWindow != stop.window) ImGui::FocusWindow(stop.window);
  const ImVec2 origin = stop.window->Pos;
  const ImRect rect(stop.min.x - origin.x, stop.min.y - origin.y, stop.max.x - origin.x,
                    stop.max.y - origin.y);
  ImGui::SetNavID(stop.id, ImGuiNavLayer_Main, 0, rect);
  ImGui::ScrollToBringRectIntoView(stop.window, {stop.min, stop.max});
  g.NavDisableHighlight = false;
  g.NavDisableMouseHover = true;
  if (!stop.is_text) return;
  g.NavNextActivateId = stop.id;
  g.NavNextActivateFlags = ImGuiActivateFlags_PreferInput;
}

}  // namespace

void add_last_item(TabStops& stops, std::string_view label) {
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  const ImGuiLastItemData& item = g.LastItemData;
  const bool is_disabled = (item.InFlags & ImGuiItemFlags_Disabled) != 0;
  if (item.ID == 0) return;
  stops.push_back({std::string(label), item.ID, g.CurrentWindow, item.Rect.Min, item.Rect.Max,
                   (item.InFlags & ImGuiItemFlags_Inputable) != 0, is_disabled});
}

bool scroll_to(const TabStop& stop) {
  const ImRect& inner = stop.window->InnerClipRect;
  const float middle = (stop.min.y + stop.max.y) / 2;
  if (middle >= inner.Min.y && middle <= inner.Max.y) return false;
  ImGui::ScrollToBringRectIntoView(stop.window, {stop.min, stop.max});
  return true;
}

std::string move_focus(const TabStops& all) {
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  TabStops stops = all;
  std::erase_if(stops, [](const TabStop& stop) { return stop.is_disabled; });
  if (!g.OpenPopupStack.empty() && g.OpenPopupStack.back().Window != nullptr) {
    const ImGuiWindow* popup = g.OpenPopupStack.back().Window;
    std::erase_if(stops, [&](const TabStop& stop) { return stop.window->RootWindow != popup; });
  }
  if (stops.empty()) return "";
  const ImGuiID current = g.ActiveId != 0 ? g.ActiveId : g.NavDisableHighlight ? 0 : g.NavId;
  auto found = std::find_if(stops.begin(), stops.end(),
                            [&](const TabStop& stop) { return stop.id == current; });
  if (!ImGui::IsKeyPressed(kTab, true)) return found == stops.end() ? "" : found->label;
  if (ImGui::GetIO().KeyShift) {
    found = found == stops.begin() || found == stops.end() ? stops.end() - 1 : found - 1;
  } else {
    found = found == stops.end() || found + 1 == stops.end() ? stops.begin() : found + 1;
  }
  focus(*found);
  return found->label;
}

}  // namespace tpsim::gui

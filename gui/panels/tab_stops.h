// Keyboard focus by Tab and Shift+Tab, through all controls in the order of drawing. ImGui's own
// Tab handling stops at text fields only.
#pragma once

#include <imgui.h>

#include <string>
#include <string_view>
#include <vector>

struct ImGuiWindow;

namespace tpsim::gui {

struct TabStop {
  std::string label;
  ImGuiID id = 0;
  ImGuiWindow* window = nullptr;
  ImVec2 min, max;  // position on the screen
  bool is_text = false;
  bool is_disabled = false;  // Tab skips the control
};
using TabStops = std::vector<TabStop>;

// Adds ImGui's last item as a stop.
void add_last_item(TabStops& stops, std::string_view label);

// Scrolls the panel of a control so that the control can be seen from the next frame on. Does
// nothing if the control is visible. Returns whether the panel scrolls.
bool scroll_to(const TabStop& stop);

// Moves the focus if Tab was pressed in this frame; call after all controls are drawn. While a
// popup is open, only its controls are stops. Returns the label of the control with the focus, or
// an empty text.
std::string move_focus(const TabStops& all);

}  // namespace tpsim::gui

// Tab goes through all controls in the order of drawing; Shift+Tab goes back. ImGui's own Tab stops
// at text fields only.
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
  ImVec2 min, max;  // on the screen
  bool is_text = false;
};
using TabStops = std::vector<TabStop>;

// Adds the last item unless it is disabled.
void add_last_item(TabStops& stops, std::string_view label);

// Moves the focus if Tab was pressed in this frame. Runs after all controls are drawn. While a
// popup is open, only its controls are stops. Returns the label of the control with the focus;
// empty if there is none.
std::string move_focus(const TabStops& stops);

}  // namespace tpsim::gui

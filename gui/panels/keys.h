// Keys by number and by name. The numbers are GLFW's, which are ASCII for letters and digits. Every
// host passes them to ImGui.
#pragma once

#include <string_view>

#include "core/base/result.h"

namespace tpsim::gui {

struct KeyChord {
  int key = 0;
  bool ctrl = false, shift = false;
};

// Parses "w", "Ctrl+F", "Enter", "F1", "Left".
Result<KeyChord> parse_key(std::string_view name);

// Sets ImGui's key map for the keys that ImGui uses itself.
void map_keys();

}  // namespace tpsim::gui

// Keys by number and by name. Key numbers are GLFW's, which equal ASCII for letters and digits.
// Every host passes these numbers to ImGui.
#pragma once

#include <string_view>

#include "core/base/result.h"

namespace tpsim::gui {

struct KeyChord {
  int key = 0;
  bool ctrl = false, shift = false;
};

// Parses a key such as "w", "Ctrl+F", "Enter", "F1" or "Left".
Result<KeyChord> parse_key(std::string_view name);

// Sets ImGui's key map for the keys that ImGui handles itself.
void map_keys();

}  // namespace tpsim::gui

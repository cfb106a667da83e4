// The texts of the last frame, read from ImGui's draw data: everything that is painted, in panels,
// popups, combo boxes and tooltips.
#pragma once

#include <imgui.h>

#include <string>
#include <string_view>
#include <vector>

#include "gui/draw/palette.h"
#include "gui/draw/picture.h"
#include "gui/panels/ui.h"

namespace tpsim::gui {

struct PaintedText {
  std::string text;  // without spaces
  Rect box;          // of the letters
  Rgba ink;
  std::string root;     // ImGui's name of the outermost window
  bool is_cut = false;  // a letter is cut at an edge, and scrolling cannot show the letter
};

std::vector<PaintedText> painted_texts();

// Whether the text is painted. Spaces do not count.
bool is_painted(std::string_view text);

// Returns the texts that lose letters at an edge of their cell, card or window. A number without
// its first digit would mislead.
std::string cut_texts(const std::vector<PaintedText>& texts);

// Returns pairs of texts of one window whose letters overlap: "'12' over 'stage3'".
std::string overlapping_texts(const std::vector<PaintedText>& texts);

// Returns the texts with a contrast below 4.5 on their background in the picture.
std::string faint_texts(const std::vector<PaintedText>& texts, const Picture& picture);

// Returns the popups, combo boxes and tooltips that leave the screen.
std::string windows_off_screen();

}  // namespace tpsim::gui

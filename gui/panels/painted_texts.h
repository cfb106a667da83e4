// The texts of a frame with their places on the screen, from which tests find texts that are cut
// off or painted over each other.
#pragma once

#include <imgui.h>

#include <string>
#include <vector>

namespace tpsim::gui {

struct PaintedText {
  std::string text;
  ImVec2 min, max;            // the letters' box
  ImVec2 clip_min, clip_max;  // the part of the screen that can be painted
  bool scrolls = false;       // the panel can be scrolled up and down to show the whole text
  bool is_over = false;       // in a popup or tooltip, which may cover other texts
};
using PaintedTexts = std::vector<PaintedText>;

// Returns a text that is about to be painted into ImGui's current window.
PaintedText painted_text(std::string text, ImVec2 min, ImVec2 max);

// Returns the texts that lose letters at an edge of their cell, card or window. A number without
// its first digit would mislead.
std::vector<std::string> cut_texts(const PaintedTexts& texts);

// Returns pairs of texts whose letters overlap: "'12' over 'stage 3'".
std::vector<std::string> overlapping_texts(const PaintedTexts& texts);

}  // namespace tpsim::gui

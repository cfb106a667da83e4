// Draws what ImGui wants drawn into a picture, on the CPU: no display, no OpenGL, and the same
// bytes on every run. The only texture it knows is the font atlas.
#pragma once

#include "gui/draw/picture.h"

struct ImDrawData;
struct ImFontAtlas;

namespace tpsim::gui {

void rasterise(const ImDrawData& data, ImFontAtlas& atlas, Picture& picture);

}  // namespace tpsim::gui

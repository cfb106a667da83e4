// Renders ImGui's draw data into a picture on the CPU, without a display or OpenGL. The output is
// byte-identical on every run. The only supported texture is the font atlas.
#pragma once

#include "gui/draw/picture.h"

struct ImDrawData;
struct ImFontAtlas;

namespace tpsim::gui {

void rasterise(const ImDrawData& data, ImFontAtlas& atlas, Picture& picture);

}  // namespace tpsim::gui

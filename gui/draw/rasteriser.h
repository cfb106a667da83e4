// Renders ImGui's draw data into a picture on the CPU, without display and OpenGL. The output is
// byte-identical on every run. Only the font atlas is supported as texture.
#pragma once

#include "gui/draw/picture.h"

struct ImDrawData;
struct ImFontAtlas;

namespace tpsim::gui {

void rasterise(const ImDrawData& data, ImFontAtlas& atlas, Picture& picture);

}  // namespace tpsim::gui

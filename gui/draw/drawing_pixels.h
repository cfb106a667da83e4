// A drawing as pixels, in the program's typeface, on the CPU.
#pragma once

#include "gui/draw/drawing.h"
#include "gui/draw/picture.h"

namespace tpsim::gui {

// `scale` pixels for each of the drawing's. Needs that no ImGui context is alive.
Picture pixels_of(const Drawing& drawing, float scale);

}  // namespace tpsim::gui

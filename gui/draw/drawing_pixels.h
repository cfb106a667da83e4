// Renders a drawing to pixels on the CPU, with the program's typeface.
#pragma once

#include "gui/draw/drawing.h"
#include "gui/draw/picture.h"

namespace tpsim::gui {

// `scale`: output pixels per unit of the drawing. No ImGui context may exist at the time of the
// call.
Picture pixels_of(const Drawing& drawing, float scale);

}  // namespace tpsim::gui

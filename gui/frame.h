// One frame: where the panels stand, and keys that belong to no panel.
#pragma once

#include "gui/ui.h"

namespace tpsim::gui {

// Between ImGui::NewFrame() and ImGui::Render(). May change the state and ask things of the host.
void draw_frame(Ui& ui);

// The scale that suits a window when the user chose none: larger windows are mostly shown more.
float fitting_scale(float width, float height);

}  // namespace tpsim::gui

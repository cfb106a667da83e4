// The program with the window (gui/main.cc), which stands beside this one: the only one that needs
// Dear ImGui, GLFW and a typeface.
#pragma once

#include <string>

#include "core/result.h"
#include "gui/drawing.h"

namespace tpsim::cli {

// Fails with kMissing where it is not built.
Status check_png_program();

// Writes a drawing as PNG: that program draws it. Fails with kMissing where it is not built.
Status write_png_of(const gui::Drawing& drawing, const std::string& path);

}  // namespace tpsim::cli

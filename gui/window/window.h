// The host with a window, using GLFW and OpenGL 3. The host sleeps until there is input or a search
// result.
#pragma once

#include <functional>

#include "gui/window/script.h"
#include "gui/window/start_options.h"

namespace tpsim::gui {

// Runs until the window is closed. If the options name a script, runs `script` once instead.
// Returns kMissing without a display or without OpenGL 3.
Status run_window(Catalogue catalogue, AppState state, const StartOptions& options,
                  const std::function<Status(ScriptHost&)>& script);

}  // namespace tpsim::gui

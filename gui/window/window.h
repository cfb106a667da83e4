// The host with a window: GLFW and OpenGL 3. Sleeps until there is input or news.
#pragma once

#include <functional>

#include "gui/window/script.h"
#include "gui/window/start_options.h"

namespace tpsim::gui {

// Runs until the window is closed, or until `script` has run if the options have one. kMissing if
// there is no display or no OpenGL 3.
Status run_window(Catalogue catalogue, AppState state, const StartOptions& options,
                  const std::function<Status(ScriptHost&)>& script);

}  // namespace tpsim::gui

// The host with a window: GLFW and OpenGL 3. It sleeps until there is input or news.
#pragma once

#include <functional>

#include "gui/window/script.h"
#include "gui/window/start_options.h"

namespace tpsim::gui {

// Until the window is closed, or until `script` has run when the options name one. Fails with
// kMissing where there is no display or no OpenGL 3.
Status run_window(Catalogue catalogue, AppState state, const StartOptions& options,
                  const std::function<Status(ScriptHost&)>& script);

}  // namespace tpsim::gui

// Actions on files and the clipboard. Each sets AppState::notice to its result.
#pragma once

#include <filesystem>

#include "gui/panels/ui.h"
#include "gui/views/views.h"

namespace tpsim::gui {

void perform(Request request, const ViewComputer& computer, AppState& state);

// Opens a saved view or a plan file. On error `state` is unchanged.
Status open_file(const std::filesystem::path& path, AppState& state);

}  // namespace tpsim::gui

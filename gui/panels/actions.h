// What the program does besides showing: files and the clipboard. Each leaves a notice in words.
#pragma once

#include <filesystem>

#include "gui/panels/ui.h"
#include "gui/views/views.h"

namespace tpsim::gui {

void perform(Request request, const ViewComputer& computer, AppState& state);

// Opens a saved view or a plan file, whichever it is; the state is kept on failure.
Status open_file(const std::filesystem::path& path, AppState& state);

}  // namespace tpsim::gui

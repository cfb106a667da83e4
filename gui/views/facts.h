// The state of the window as text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gui/views/views.h"

namespace tpsim::gui {

// Returns pairs of name and text for scripts and tests: "plan.tp" -> "8".
std::vector<std::pair<std::string, std::string>> facts(const AppState& state, const Views& views);

}  // namespace tpsim::gui

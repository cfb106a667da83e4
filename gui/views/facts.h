// The displayed values of the window as text, for scripts and tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gui/views/views.h"

namespace tpsim::gui {

// Returns pairs of name and value: "plan.tp", "8".
std::vector<std::pair<std::string, std::string>> facts(const AppState& state, const Views& views);

}  // namespace tpsim::gui

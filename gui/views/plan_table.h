// The plan table without its pixels: which plans it shows, in which order, and the words in it.
#pragma once

#include <string>
#include <vector>

#include "core/plan/report.h"
#include "gui/views/app_state.h"

namespace tpsim::gui {

// Indices into `plans`, filtered and sorted. A filter is a list of words, all of which must hold:
// "tp=4", "mb<=2", "step<100", "gib<70", or a name such as "flash", "full", "sp", "1f1b".
std::vector<std::size_t> shown_plans(const std::vector<PlannedRun>& plans, const TableState& table);

// The first word of the filter that means nothing; empty when all do.
std::string unknown_filter_word(const std::string& filter);

// Faster plans that no interval tells apart from the fastest.
bool ties_with(const Prediction& plan, const Prediction& best);

// "tp 8 · pp 12 · dp 4"
std::string degrees_text(const Plan& plan);

}  // namespace tpsim::gui

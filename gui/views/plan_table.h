// Contents of the plan table: the visible plans, their order and texts.
#pragma once

#include <string>
#include <vector>

#include "core/plan/report.h"
#include "gui/views/app_state.h"

namespace tpsim::gui {

// Returns indices into `plans`, filtered and sorted. A filter is a list of conditions that must all
// hold: "tp=4", "mb<=2", "step<100", "gib<70", or a name such as "flash", "full", "sp", "1f1b".
std::vector<std::size_t> shown_plans(const std::vector<PlannedRun>& plans, const TableState& table);

// Returns the first unknown word of the filter; empty if there is none.
std::string unknown_filter_word(const std::string& filter);

// Whether no interval distinguishes the plan from the fastest.
bool ties_with(const Prediction& plan, const Prediction& best);

// "tp 8 · pp 12 · dp 4"
std::string degrees_text(const Plan& plan);

}  // namespace tpsim::gui

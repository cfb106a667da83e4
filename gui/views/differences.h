// How two plans differ, in words and in seconds.
#pragma once

#include <string>
#include <vector>

#include "gui/views/views.h"
#include "plans/questions/why_not.h"

namespace tpsim::gui {

// Of b against a, largest first by size; terms that differ by less than a thousandth of a's step
// are left out.
std::vector<TermDifference> largest_differences(const Prediction& a, const Prediction& b);

// "B is 12.3 s slower, within A's interval; 4.2 GiB less memory"
std::string summary_of(const PlanView& a, const PlanView& b);

// "A: tp 8, pp 12; B: tp 4, pp 24": the settings in which they differ.
std::string settings_difference(const Plan& a, const Plan& b);

}  // namespace tpsim::gui

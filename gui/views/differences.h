// Differences between two plans, as text and in seconds.
#pragma once

#include <string>
#include <vector>

#include "gui/views/views.h"
#include "plans/questions/why_not.h"

namespace tpsim::gui {

// Differences of b from a, at most `most`, sorted by magnitude. Terms that differ by less than
// 1/1000 of a's step, or have no row, are summed up in a last row "5 smaller terms". The sum of all
// rows is the difference of the steps.
std::vector<TermDifference> largest_differences(const Prediction& a, const Prediction& b,
                                                std::size_t most = 1000);

// "B is 12.3 s slower, within A's interval; 4.2 GiB less memory"
std::string summary_of(const PlanView& a, const PlanView& b);

// Returns the settings that differ: "A → B: tp 8 → 4, pp 12 → 24".
std::string settings_difference(const Plan& a, const Plan& b);

}  // namespace tpsim::gui

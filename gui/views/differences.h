// Differences between two plans, in settings and in seconds.
#pragma once

#include <string>
#include <vector>

#include "gui/views/views.h"
#include "plans/questions/why_not.h"

namespace tpsim::gui {

// Returns the differences of b's terms from a's in at most `most` rows, largest first. The last
// row, "5 smaller terms", sums the terms below 1/1000 of a's step and those beyond `most`. All rows
// add up to the difference of the step times.
std::vector<TermDifference> largest_differences(const Prediction& a, const Prediction& b,
                                                std::size_t most = 1000);

// Returns a summary: "B is 12.3 s slower, within A's interval; 4.2 GiB less memory".
std::string summary_of(const PlanView& a, const PlanView& b);

// Returns the settings that differ: "A → B: tp 8 → 4, pp 12 → 24".
std::string settings_difference(const Plan& a, const Plan& b);

}  // namespace tpsim::gui

// The report of `campaign` as text (docs/campaign.md).
#pragma once

#include <string>

#include "app/answers/campaign_answer.h"
#include "cli/options/options.h"
#include "cli/options/terminal.h"

namespace tpsim::cli {

std::string campaign_text(const Terminal& terminal, const CampaignReport& report);
// Returns the goal and the numbers of GPUs that were tried for it.
std::string goal_view(const Terminal& terminal, const GoalReport& report);

}  // namespace tpsim::cli

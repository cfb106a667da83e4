// Results of `campaign` as text and as JSON (docs/campaign.md). With --deadline 60d --budget
// 3000000USD the results include the cluster size, plan and checkpoint interval that meet the goal.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "campaigns/campaign.h"
#include "campaigns/goals.h"
#include "cli/options/campaign_report.h"
#include "cli/options/terminal.h"
#include "core/json/json_value.h"

namespace tpsim::cli {

// Parses a time with unit: "105s", "3 h", "30min", "60d". Zero if the option is absent.
Result<Seconds> time_of(const Arguments& arguments, Opt opt);

// Returns the goal that --deadline and --budget state; nothing without them.
Result<std::optional<CampaignGoal>> goal_of(const Arguments& arguments);

// Predicts the campaign for all numbers of GPUs in --gpus, or for all sizes of the cluster.
Result<GoalAnswer> goal_answer(const Arguments& arguments, const Scenario& scenario,
                               const CampaignRequest& request, const Assumptions& assumptions,
                               const CampaignGoal& goal,
                               const std::function<void(double)>& progress);

// Returns the time of a campaign that misses the goal, and its cost if the goal has a budget: "512
// GPUs take 71.2 days and 4,100,000 USD".
std::string shortfall_text(const CampaignGoal& goal, const Campaign& campaign);
// Returns the error if no size meets the goal.
Error goal_missed(const CampaignGoal& goal, const GoalAnswer& answer);

std::string goal_view(const Terminal& terminal, const GoalReport& report);
JsonValue goal_json(const GoalReport& report);

// Returns the assumptions that the options name, or else those of the cluster. Error for a cluster
// file without --assumptions.
Result<Assumptions> assumptions_of(const Arguments& arguments, const std::string& cluster);

std::string campaign_text(const Terminal& terminal, const CampaignReport& report);

// {"version": "tpsim-campaign-report/1", ...}
JsonValue campaign_json(const CampaignReport& report);

}  // namespace tpsim::cli

// Result of `tpsim campaign` as a value.
#pragma once

#include <optional>
#include <vector>

#include "campaigns/campaign.h"
#include "campaigns/goals.h"
#include "cli/options/inputs.h"

namespace tpsim::cli {

struct GoalReport {
  CampaignGoal goal;
  GoalStanding standing = GoalStanding::kMissed;
  GoalAnswer answer;  // has no sizes if a plan was given
};

struct CampaignReport {
  NamedScenario named;
  Plan plan;
  CampaignRequest request;
  Assumptions assumptions;
  Campaign campaign;
  std::vector<Replanned> replanned;  // empty if not requested
  std::optional<GoalReport> goal;    // empty if not requested
};

}  // namespace tpsim::cli

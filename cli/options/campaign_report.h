// The answer of `tpsim campaign` as a value.
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
  GoalAnswer answer;  // without sizes for a plan that was given
};

struct CampaignReport {
  NamedScenario named;
  Plan plan;
  CampaignRequest request;
  Assumptions assumptions;
  Campaign campaign;
  std::vector<Replanned> replanned;  // empty when nobody asked
  std::optional<GoalReport> goal;    // likewise
};

}  // namespace tpsim::cli

// A campaign as text for people and as the document of docs/campaign.md.
#pragma once

#include <string>
#include <vector>

#include "cli/goal.h"
#include "cli/inputs.h"
#include "cli/terminal.h"
#include "core/json_value.h"
#include "plans/campaign.h"

namespace tpsim::cli {

struct CampaignReport {
  NamedScenario named;
  Plan plan;
  CampaignRequest request;
  Assumptions assumptions;
  Campaign campaign;
  std::vector<Replanned> replanned;  // empty when nobody asked
  std::optional<GoalReport> goal;    // likewise
};

// Of the options, else of the cluster's name; an error for a cluster of one's own without options.
Result<Assumptions> assumptions_of(const Arguments& arguments, const std::string& cluster);

std::string campaign_text(const Terminal& terminal, const CampaignReport& report);

// {"version": "tpsim-campaign-report/1", ...}
JsonValue campaign_json(const CampaignReport& report);

}  // namespace tpsim::cli

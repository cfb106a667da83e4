// A whole training run: time, cost and energy of a plan, or the number of GPUs that meets a goal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/scenario/fit.h"
#include "app/scenario/plan_request.h"
#include "campaigns/campaign.h"
#include "campaigns/goals.h"
#include "core/base/result.h"

namespace tpsim::app {

// Power, prices and failures of a run.
struct StatedAssumptions {
  std::string name = {};  // entry of data/campaigns or path; empty: that of the cluster
  std::map<Assumption, double> values = {};  // replace those of the entry
  std::string offers = {};                   // rental offers that state the price (offered_price())
  bool chooses_spares = false;               // the number of spare nodes is optimized
};
// Error for a cluster file if no entry is named.
Result<Assumptions> load_assumptions(const StatedAssumptions& stated, const NamedScenario& named);

struct WholeRunRequest {
  ScenarioRequest scenario = {};
  StatedSettings settings = {};              // of the plan, without a search
  std::optional<SearchRequest> search = {};  // chooses the plan
  CampaignRequest run = {};
  StatedAssumptions assumptions = {};
  std::optional<CampaignGoal> goal = {};
  // Numbers of GPUs to try for the goal; empty: all sizes of the cluster. Used without a plan file.
  std::vector<std::int64_t> gpus = {};
  std::int64_t lost_nodes = 0;  // also search the best plans with up to this many nodes lost
  AcceptedRisk risk = {};
  Progress progress = {};
};

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
Result<CampaignReport> campaign_answer(const WholeRunRequest& request);

// Returns the goal in words: "within 60.0 days for 3,000,000 USD".
std::string goal_text(const CampaignGoal& goal);
// Returns the time of a campaign that misses the goal, and its cost if the goal has a budget: "512
// GPUs take 71.2 days and 4,100,000 USD".
std::string shortfall_text(const CampaignGoal& goal, const Campaign& campaign);

// An assumption of a report: a number of the assumptions file, or a choice of the model.
struct ShownAssumption {
  std::string key;
  std::string value;
  std::string source;
};
std::vector<ShownAssumption> shown_assumptions(const CampaignReport& report);

// Returns "3.2 days", "5.0 h", "2.5 min" or "12.0 s".
std::string duration_text(Seconds time);

}  // namespace tpsim::app

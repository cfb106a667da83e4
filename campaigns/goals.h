// Campaigns with a goal: the cluster size that completes a run within a deadline, a budget, or
// both.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "campaigns/campaign.h"
#include "plans/search/search.h"

namespace tpsim {

struct CampaignGoal {
  Seconds deadline;   // wall time of the run; zero: none
  double budget = 0;  // USD, spare nodes included; zero: none
};

// kSure: the goal is met even at the slow end of the step's 90 % interval.
enum class GoalStanding : std::uint8_t { kSure, kAsPredicted, kMissed };
template <>
inline constexpr auto kEnumNames<GoalStanding> =
    std::to_array<std::string_view>({"sure", "as predicted", "missed"});

struct GoalSize {
  std::int64_t gpus = 0;
  std::optional<PlannedRun> best;
  std::optional<Campaign> campaign;  // of the best plan
  GoalStanding standing = GoalStanding::kMissed;
  std::string why_none;                // why the size has no campaign; empty if it has one
  std::vector<TriedParts> tried = {};  // combinations of open stack parts, best first
};

struct GoalAnswer {
  std::vector<GoalSize> sizes;         // smallest first, all that were tried
  std::optional<std::size_t> chosen;   // empty if no size meets the goal
  std::optional<std::size_t> nearest;  // smallest excess in that case; empty if no plan fits
};

// Returns sizes of 1, 2, 3, 4, 6, 8, 12 ... whole hosts up to the cluster. The smallest size is one
// that could meet the goal if every GPU reached its peak.
std::vector<std::int64_t> goal_sizes(const Scenario& scenario, const CampaignGoal& goal,
                                     double tokens);

// Returns whether a campaign meets the goal.
GoalStanding standing_of(const CampaignGoal& goal, const Campaign& campaign);

// Finds the best plan and campaign of each size in `space`, whose GPU count is ignored. Sizes that
// surely meet the goal precede those that meet it as predicted. Among equals the cheapest is chosen
// if there is a deadline, else the fastest. If spare nodes are free and the cheapest number misses
// the deadline, the number that saves time is used. Stops after three larger sizes in a row that
// are not better. If all sizes fail, returns the error of the first.
Result<GoalAnswer> plan_for_goal(const Scenario& scenario, const SearchSpace& space,
                                 const std::vector<std::int64_t>& sizes,
                                 const CampaignRequest& request, const Assumptions& assumptions,
                                 const CampaignGoal& goal, int threads,
                                 const std::function<void(double)>& progress);

}  // namespace tpsim

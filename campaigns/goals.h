// A campaign towards a goal: of all sizes of a cluster the one that ends a run in time, within
// a budget, or both.
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

// Met for sure: also where the step takes as long as the slow end of its 90 % interval says.
enum class GoalStanding : std::uint8_t { kSure, kAsPredicted, kMissed };
template <>
inline constexpr auto kEnumNames<GoalStanding> =
    std::to_array<std::string_view>({"sure", "as predicted", "missed"});

struct GoalSize {
  std::int64_t gpus = 0;
  std::optional<PlannedRun> best;
  std::optional<Campaign> campaign;  // of the best plan
  GoalStanding standing = GoalStanding::kMissed;
  std::string why_none;                // where there is no campaign
  std::vector<TriedParts> tried = {};  // parts that the stack leaves open, the best first
};

struct GoalAnswer {
  std::vector<GoalSize> sizes;         // smallest first, as far as was looked
  std::optional<std::size_t> chosen;   // none: no size meets the goal
  std::optional<std::size_t> nearest;  // then the one that misses by least; none: nothing fits
};

// Whole hosts, 1, 2, 3, 4, 6, 8, 12 ... of them, up to the cluster; from the smallest on that could
// meet the goal if every GPU reached its peak.
std::vector<std::int64_t> goal_sizes(const Scenario& scenario, const CampaignGoal& goal,
                                     double tokens);

// How a campaign stands to the goal.
GoalStanding standing_of(const CampaignGoal& goal, const Campaign& campaign);

// The best plan and campaign of each size, in `space` but for its GPUs. Chosen is, of those that
// meet the goal for sure, else of those that do as predicted: the cheapest where there is
// a deadline, else the shortest. Where spare nodes are free to choose and the deadline is missed
// with the cheapest, those that save time are taken. Larger sizes are left out once three in a row
// were no better than the choice. Fails with the error of the first size where all of them fail.
Result<GoalAnswer> plan_for_goal(const Scenario& scenario, const SearchSpace& space,
                                 const std::vector<std::int64_t>& sizes,
                                 const CampaignRequest& request, const Assumptions& assumptions,
                                 const CampaignGoal& goal, int threads,
                                 const std::function<void(double)>& progress);

}  // namespace tpsim

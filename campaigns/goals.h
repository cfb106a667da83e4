// Finds the number of GPUs with which a run meets a deadline, a budget, or both.
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
  Seconds deadline;   // longest wall time of the run; zero: no deadline
  double budget = 0;  // USD, including spare nodes; zero: no budget
};

// kSure: the goal is met even at the slow end of the step's 90 % interval. kAsPredicted: the goal
// is met only at the predicted step time.
enum class GoalStanding : std::uint8_t { kSure, kAsPredicted, kMissed };
template <>
inline constexpr auto kEnumNames<GoalStanding> =
    std::to_array<std::string_view>({"sure", "as predicted", "missed"});

struct GoalSize {
  std::int64_t gpus = 0;
  std::optional<PlannedRun> best;
  std::optional<Campaign> campaign;  // of the best plan
  GoalStanding standing = GoalStanding::kMissed;
  std::string why_none;  // reason why the size has no campaign; empty if it has one
  // Combinations of software options that the search tried for this size, best first.
  std::vector<TriedParts> tried = {};
};

struct GoalAnswer {
  std::vector<GoalSize> sizes;        // tried sizes, smallest first
  std::optional<std::size_t> chosen;  // empty if no size meets the goal
  // If no size meets the goal: the size that misses it by the smallest factor; empty if no plan
  // fits.
  std::optional<std::size_t> nearest;
};

// Returns GPU counts of 1, 2, 3, 4, 6, 8, 12 ... whole hosts, up to the size of the cluster. Skips
// sizes that would miss the deadline even at the peak FLOP/s of `precisions` (16 bits if empty),
// unless all sizes would.
std::vector<std::int64_t> goal_sizes(const Scenario& scenario,
                                     const std::vector<std::int64_t>& precisions,
                                     const CampaignGoal& goal, double tokens);

// Returns whether a campaign meets the goal.
GoalStanding standing_of(const CampaignGoal& goal, const Campaign& campaign);

// Finds the best plan and campaign for each size. The GPU count of `space` is ignored. Prefers
// sizes of standing kSure to kAsPredicted, and these to kMissed. Among sizes of equal standing,
// chooses the cheapest if there is a deadline, else the fastest. If spare nodes are not stated and
// the cheapest number of them misses the deadline, tries the number that minimizes wall time. Stops
// after three larger sizes in a row that are not better. If all sizes fail, returns the error of
// the first.
Result<GoalAnswer> plan_for_goal(const Scenario& scenario, const SearchSpace& space,
                                 const std::vector<std::int64_t>& sizes,
                                 const CampaignRequest& request, const Assumptions& assumptions,
                                 const CampaignGoal& goal, int threads,
                                 const std::function<void(double)>& progress);

}  // namespace tpsim

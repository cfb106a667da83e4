#include "campaigns/goals.h"

#include <algorithm>

namespace tpsim {
namespace {

constexpr std::size_t kPatience = 3;  // sizes without improvement before the search ends

bool leaves_spares_open(const Assumptions& assumptions) {
  return assumptions.values[static_cast<std::size_t>(Assumption::kSpareNodes)].source.empty();
}

// Whether the goal is met if the campaign takes `wall`. Cost scales with time.
bool meets(const CampaignGoal& goal, const Campaign& campaign, Seconds wall) {
  const double longer = wall / campaign.time.wall();
  const bool in_time = goal.deadline <= Seconds() || wall <= goal.deadline;
  return in_time && (goal.budget <= 0 || campaign.cost.usd * longer <= goal.budget);
}

// Returns wall time / deadline or cost / budget, whichever is larger. The nearest miss has the
// smallest value.
double excess(const CampaignGoal& goal, const Campaign& campaign) {
  double most = 0;
  if (goal.deadline > Seconds()) most = campaign.time.wall() / goal.deadline;
  return goal.budget > 0 ? std::max(most, campaign.cost.usd / goal.budget) : most;
}

// Returns the value to minimize among sizes of equal standing: cost in USD if there is a deadline,
// else wall time in seconds.
double price(const CampaignGoal& goal, const Campaign& campaign) {
  return goal.deadline > Seconds() ? campaign.cost.usd : campaign.time.wall().value();
}

bool better(const CampaignGoal& goal, const GoalSize& a, const GoalSize& b) {
  if (a.standing != b.standing) return a.standing < b.standing;
  if (a.standing == GoalStanding::kMissed) {
    return excess(goal, *a.campaign) < excess(goal, *b.campaign);
  }
  return price(goal, *a.campaign) < price(goal, *b.campaign);
}

class GoalSearch {
 public:
  GoalSearch(const Scenario& scenario, const CampaignRequest& request,
             const Assumptions& assumptions, const CampaignGoal& goal)
      : scenario_(scenario), request_(request), assumptions_(assumptions), goal_(goal) {}

  // Searches the best plan for space.gpus and plans its campaign. If no plan fits, the result has
  // `why_none` and no campaign.
  Result<GoalSize> size_of(const SearchSpace& space, int threads) const {
    TPSIM_TRY(const SearchResult found, search(scenario_, space, 1, {}, threads));
    GoalSize size;
    size.gpus = space.gpus;
    if (found.plans.empty()) {
      size.why_none = found.feasible > 0 ? "no plan is legal" : "no plan fits or is legal";
      return size;
    }
    size.best = found.plans.front();
    size.tried = found.tried;
    const Scenario scenario = with_found_parts(scenario_, found);
    TPSIM_TRY(size.campaign, campaign_of(scenario, size.best->plan, request_));
    size.standing = standing_of(goal_, *size.campaign);
    const bool may_hurry = leaves_spares_open(assumptions_) && goal_.deadline > Seconds() &&
                           request_.spares_for == SparesFor::kCost;
    if (size.standing == GoalStanding::kSure || !may_hurry) return size;
    CampaignRequest hurried = request_;
    hurried.spares_for = SparesFor::kTime;
    GoalSize other = size;
    TPSIM_TRY(other.campaign, campaign_of(scenario, size.best->plan, hurried));
    other.standing = standing_of(goal_, *other.campaign);
    return better(goal_, other, size) ? other : size;
  }

 private:
  Result<Campaign> campaign_of(const Scenario& scenario, const Plan& plan,
                               const CampaignRequest& request) const {
    return plan_campaign(scenario, plan, request, assumptions_);
  }

  const Scenario& scenario_;
  const CampaignRequest& request_;
  const Assumptions& assumptions_;
  const CampaignGoal& goal_;
};

// Index of the best size so far, and the number of sizes tried since then.
struct Best {
  std::optional<std::size_t> at;
  std::size_t since = 0;

  void take(const CampaignGoal& goal, const std::vector<GoalSize>& sizes) {
    const std::size_t last = sizes.size() - 1;
    if (!sizes[last].campaign) return;
    const bool first = !at.has_value();
    if (first || better(goal, sizes[last], sizes[*at])) {
      at = last;
      since = 0;
    } else {
      ++since;
    }
  }
};

// Returns the peak FLOP/s of GEMMs in the searched precisions.
double peak_of(const DeviceFacts& device, const std::vector<std::int64_t>& precisions) {
  const bool is_narrow = std::any_of(precisions.begin(), precisions.end(), [](std::int64_t value) {
    return value != static_cast<std::int64_t>(Precision::kNone);
  });
  if (!is_narrow) return device.matmul_peak.value();
  return std::max({device.matmul_peak.value(), device.fp8_peak.value(), device.mxfp8_peak.value(),
                   device.nvfp4_peak.value()});
}

}  // namespace

std::vector<std::int64_t> goal_sizes(const Scenario& scenario,
                                     const std::vector<std::int64_t>& precisions,
                                     const CampaignGoal& goal, double tokens) {
  const std::int64_t host = host_size(scenario.cluster);
  const std::int64_t hosts = gpus_of(scenario.cluster) / host;
  const double gpu_seconds = tokens / static_cast<double>(scenario.model.seq) *
                             model_flops_per_step(scenario.model, 1).value() /
                             peak_of(scenario.profile.device, precisions);
  std::vector<std::int64_t> sizes;
  for (std::int64_t power = 1; power <= hosts; power *= 2) {
    for (const std::int64_t half : {2, 3}) {
      const std::int64_t count = power * half / 2;
      const bool is_new = half == 2 || power > 1;
      const auto gpus = static_cast<double>(count * host);
      const bool hopeless = goal.deadline > Seconds() && gpu_seconds / gpus > goal.deadline.value();
      if (is_new && count <= hosts && !hopeless) sizes.push_back(count * host);
    }
  }
  // If every size would miss the deadline, returns all sizes, so that the nearest miss can be
  // found.
  return sizes.empty() ? goal_sizes(scenario, precisions, {}, tokens) : sizes;
}

GoalStanding standing_of(const CampaignGoal& goal, const Campaign& campaign) {
  if (meets(goal, campaign, campaign.wall_high)) return GoalStanding::kSure;
  return meets(goal, campaign, campaign.time.wall()) ? GoalStanding::kAsPredicted
                                                     : GoalStanding::kMissed;
}

Result<GoalAnswer> plan_for_goal(const Scenario& scenario, const SearchSpace& space,
                                 const std::vector<std::int64_t>& sizes,
                                 const CampaignRequest& request, const Assumptions& assumptions,
                                 const CampaignGoal& goal, int threads,
                                 const std::function<void(double)>& progress) {
  const GoalSearch searcher(scenario, request, assumptions, goal);
  GoalAnswer answer;
  std::optional<Error> first_error;
  Best best;
  for (const std::int64_t gpus : sizes) {
    SearchSpace sized = space;
    sized.gpus = gpus;
    const Result<GoalSize> size = searcher.size_of(sized, threads);
    if (size.ok()) {
      answer.sizes.push_back(*size);
    } else {
      if (!first_error) first_error = size.error();
      answer.sizes.push_back({gpus, {}, {}, GoalStanding::kMissed, size.error().message});
    }
    best.take(goal, answer.sizes);
    if (progress) {
      progress(static_cast<double>(answer.sizes.size()) / static_cast<double>(sizes.size()));
    }
    const bool met = best.at && answer.sizes[*best.at].standing != GoalStanding::kMissed;
    if (met && best.since >= kPatience) break;
  }
  if (!best.at && first_error) return *first_error;
  const bool is_met = best.at && answer.sizes[*best.at].standing != GoalStanding::kMissed;
  (is_met ? answer.chosen : answer.nearest) = best.at;
  return answer;
}

}  // namespace tpsim

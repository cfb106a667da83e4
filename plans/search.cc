#include "plans/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "plans/enumerate.h"
#include "sim/predict.h"
#include "sim/step.h"

namespace tpsim {
namespace {

struct Candidate {
  double bound = 0;  // no better score is possible
  Plan plan;
};

// What the objective minimises.
double score_of(Objective objective, const Plan& plan, Seconds step, Bytes peak) {
  switch (objective) {
    case Objective::kTime: return step.value();
    case Objective::kMemory: return peak.value();
    case Objective::kCost: return step.value() * static_cast<double>(gpu_count(plan));
  }
  return 0;
}

Bytes peak_of(const std::vector<StageMemory>& stages) {
  Bytes peak;
  for (const StageMemory& stage : stages) peak = std::max(peak, stage.total());
  return peak;
}

class Search {
 public:
  Search(const Scenario& scenario, const SearchSpace& space, int top)
      : space_(space), top_(static_cast<std::size_t>(std::max(1, top))), pieces_(scenario) {}

  SearchResult run(const std::function<void(double)>& progress) {
    const auto start = std::chrono::steady_clock::now();
    for (const std::int64_t gpus : gpu_counts()) {
      SearchSpace part = space_;
      part.gpus = gpus;
      const EnumerationCount count =
          enumerate_plans(pieces_.scenario(), part, [&](const Plan& plan) { consider(plan); });
      result_.considered += count.considered;
      for (const auto& [reason, n] : count.pruned) result_.pruned[reason] += n;
    }
    if (over_memory_ > 0) result_.pruned["needs more memory than a GPU has"] += over_memory_;
    result_.feasible = static_cast<std::int64_t>(candidates_.size());
    choose_best(progress);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    result_.elapsed = Seconds(elapsed.count());
    return std::move(result_);
  }

 private:
  // Cost may prefer fewer GPUs: every number of whole nodes up to the given one.
  std::vector<std::int64_t> gpu_counts() const {
    const std::int64_t per_node = pieces_.scenario().cluster.gpus_per_node;
    if (space_.objective != Objective::kCost || space_.gpus <= per_node) return {space_.gpus};
    std::vector<std::int64_t> counts;
    for (std::int64_t gpus = per_node; gpus <= space_.gpus; gpus += per_node)
      counts.push_back(gpus);
    return counts;
  }

  bool fits(Bytes peak) const {
    if (space_.memory_limit > Bytes() && peak > space_.memory_limit) return false;
    return probability_of_oom(pieces_.scenario(), peak) <= 0.5;
  }

  void consider(const Plan& plan) {
    const PlanCosts costs = plan_costs(pieces_, plan);
    const Bytes peak = peak_of(memory_by_stage(pieces_.scenario().stack, plan, costs));
    if (!fits(peak)) {
      ++over_memory_;
      if (nearest_miss_peak_ <= Bytes() || peak < nearest_miss_peak_) {
        nearest_miss_peak_ = peak;
        nearest_miss_ = plan;
      }
      return;
    }
    const Seconds bound = step_lower_bound(pieces_, plan, costs);
    candidates_.push_back({score_of(space_.objective, plan, bound, peak), plan});
  }

  // Bounds never exceed the exact score, so once a bound passes the worst of the best `top` nothing
  // better can follow.
  void choose_best(const std::function<void(double)>& progress) {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.bound < b.bound; });
    std::vector<std::pair<double, const Plan*>> best;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const Plan& plan = candidates_[i].plan;
      if (best.size() == top_ && candidates_[i].bound > best.back().first) break;
      const PlanCosts costs = plan_costs(pieces_, plan);
      const Seconds step = step_cost(pieces_, plan, costs, nullptr).step;
      const double score = space_.objective == Objective::kMemory
                               ? candidates_[i].bound
                               : score_of(space_.objective, plan, step, Bytes());
      const auto place = std::upper_bound(best.begin(), best.end(), score,
                                          [](double s, const auto& b) { return s < b.first; });
      best.insert(place, {score, &plan});
      if (best.size() > top_) best.pop_back();
      if (progress && i % 64 == 0) {
        progress(static_cast<double>(i) / static_cast<double>(candidates_.size()));
      }
    }
    for (const auto& [score, plan] : best) {
      result_.plans.push_back({*plan, predict(pieces_, *plan)});
    }
    if (best.empty() && nearest_miss_peak_ > Bytes()) {
      result_.nearest_miss = PlannedRun{nearest_miss_, predict(pieces_, nearest_miss_)};
    }
  }

  const SearchSpace& space_;
  std::size_t top_;
  PieceCosts pieces_;
  SearchResult result_;
  std::vector<Candidate> candidates_;
  std::int64_t over_memory_ = 0;
  Bytes nearest_miss_peak_;
  Plan nearest_miss_;
};

Status check_space(const Scenario& scenario, const SearchSpace& space) {
  TPSIM_TRY_STATUS(validate(scenario.model));
  const ClusterSpec& cluster = scenario.cluster;
  const std::int64_t available = cluster.nodes * cluster.gpus_per_node;
  if (space.gpus < 1 || space.gpus > available) {
    return Error{
        ErrorKind::kBadInput,
        fmt::format("{} GPUs asked for; cluster {} has {}", space.gpus, cluster.name, available),
        "--gpus", fmt::format("choose between 1 and {}", available)};
  }
  if (space.gpus > cluster.gpus_per_node && space.gpus % cluster.gpus_per_node != 0) {
    const std::int64_t below = space.gpus / cluster.gpus_per_node * cluster.gpus_per_node;
    return Error{ErrorKind::kBadInput,
                 fmt::format("{} GPUs do not fill nodes of {}", space.gpus, cluster.gpus_per_node),
                 "--gpus",
                 fmt::format("the nearest are {} and {}", below, below + cluster.gpus_per_node)};
  }
  if (space.global_batch < 1) {
    return Error{ErrorKind::kBadInput,
                 fmt::format("a global batch of {} sequences", space.global_batch),
                 "--global-batch", "it must be at least 1"};
  }
  return Ok{};
}

}  // namespace

Result<SearchResult> search(const Scenario& scenario, const SearchSpace& space, int top,
                            const std::function<void(double)>& progress) {
  TPSIM_TRY_STATUS(check_space(scenario, space));
  return Search(scenario, space, top).run(progress);
}

}  // namespace tpsim

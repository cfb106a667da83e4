// One pass of a search: bounds of every family of plans, then simulation, task by task, of the
// plans that may be among the best. Internal to plans/search.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <queue>
#include <set>
#include <thread>
#include <tuple>

#include "plans/search/enumerate.h"
#include "plans/search/family_search.h"
#include "plans/search/front_search.h"
#include "plans/search/nearest_miss.h"
#include "plans/search/parallel_for.h"
#include "plans/search/pricer_pool.h"
#include "plans/search/search_result.h"
#include "plans/search/search_work.h"
#include "sim/step/predict.h"
#include "sim/step/step.h"

namespace tpsim {

inline constexpr const char* kOverMemory = "would run out of memory";
inline constexpr const char* kOverHost = "needs more memory than a host has";
inline constexpr const char* kTooLong = "a step may take longer than the limit";
// Share of the progress bar that computing bounds takes. The simulation often stops early.
inline constexpr double kBoundsShare = 0.9;
inline constexpr const char* kNotAsGood = "cannot be as good as the plans shown";
inline constexpr const char* kMoreRecompute = "recomputes more blocks than memory asks for";

inline bool comes_before(const Candidate& a, const Candidate& b) {
  return std::tuple(a.bound, a.place, a.plan.recompute_blocks) <
         std::tuple(b.bound, b.place, b.plan.recompute_blocks);
}

inline Plan whole_plan(const Plan& settings, const StageCut& cut) {
  Plan plan = settings;
  plan.stage_layers = cut.layers;
  return plan;
}

class SearchPass {
 public:
  // `cap`: plans with a higher score are skipped; with a cap, a pass without plans does not look
  // for a nearest miss. `slow`: groups whose scores exceed the cap, or null. `surely`: plans are
  // skipped if the slow end of their interval exceeds the cap.
  SearchPass(PricerPool& pricers, const SearchSpace& space, int top, double cap = kNoCap,
             const SlowGroups* slow = nullptr, bool surely = false)
      : space_(space),
        top_(static_cast<std::size_t>(std::max(1, top))),
        cap_(cap),
        slow_(slow),
        surely_(surely),
        seeks_miss_(space.wants_nearest_miss),
        pricers_(pricers),
        plans_(pricers.scenario(), space),
        most_(pricers.scenario().limits.memory < kNoLimits.memory
                  ? kMostCandidates
                  : std::numeric_limits<std::int64_t>::max()) {}

  // `reached`: a score that at least `top` plans of the space reach, or kNoCap.
  Result<SearchResult> best(const std::function<void(double)>& progress, int threads,
                            double reached = kNoCap) {
    return completed([&]() -> Status {
      has_plans_ = reached < kNoCap;
      TPSIM_TRY_STATUS(bound_families(threads, progress, std::min(cap_, reached)));
      std::vector<Scored> best;
      TPSIM_TRY_STATUS(open_best(groups_, progress, best));
      return add_plans(best);
    });
  }

  // Returns the score of the worst of the `top` best plans; kNoCap if there are fewer plans.
  double reached_score(int threads, double reached) {
    std::vector<Scored> best;
    const bool is_done = bound_families(threads, {}, std::min(cap_, reached)).ok() &&
                         open_best(groups_, {}, best).ok();
    return is_done && best.size() == top_ ? best.back().score : kNoCap;
  }

  // Returns the Pareto front. Uses the bounds of an earlier best() or front() of this pass.
  Result<SearchResult> front(const std::function<void(double)>& progress, int threads) {
    return completed([&]() -> Status {
      TPSIM_TRY_STATUS(bound_families(threads, progress, cap_));
      return open_front(progress);
    });
  }

  // Returns the `top` best plans with this tensor parallel degree, without a nearest miss. Uses the
  // bounds of an earlier best() or front() of this pass.
  Result<SearchResult> best_of_tp(std::int64_t tp, int top,
                                  const std::function<void(double)>& progress, int threads) {
    return completed([&]() -> Status {
      seeks_miss_ = false;  // the best plans of another degree may fit
      TPSIM_TRY_STATUS(bound_families(threads, progress, cap_));
      top_ = static_cast<std::size_t>(std::max(1, top));
      std::vector<BoundedGroup> groups;
      std::copy_if(groups_.begin(), groups_.end(), std::back_inserter(groups),
                   [tp](const BoundedGroup& group) { return group.key.degrees.tp == tp; });
      std::vector<Scored> best;
      TPSIM_TRY_STATUS(open_best(groups, progress, best));
      return add_plans(best);
    });
  }

  // Returns the tensor parallel degrees of the groups that front() kept, ascending.
  std::vector<std::int64_t> tp_degrees() const {
    std::set<std::int64_t> degrees;
    for (const BoundedGroup& group : groups_) degrees.insert(group.key.degrees.tp);
    return {degrees.begin(), degrees.end()};
  }

  // Returns the groups whose lower bound exceeds the score. Does not consider memory.
  SlowGroups groups_beyond(double score) const {
    SlowGroups slow;
    for (const BoundedGroup& group : groups_) {
      if (group.bound > score) slow.emplace(group.key, group.slots);
    }
    return slow;
  }

 private:
  template <class Work>
  Result<SearchResult> completed(const Work& work) {
    TPSIM_TRY_STATUS(work());
    if (result_.feasible == 0 && cap_ == kNoCap) {
      if (result_.pruned.count(kTooLong) > 0) return step_too_long(pricers_.scenario());
      if (seeks_miss_ && result_.is_complete()) TPSIM_TRY_STATUS(find_nearest_miss());
    }
    return std::move(result_);
  }

  LayerPricer& pricer() { return families_.back()->pricer(); }

  using Found = FamilySearch::Found;

  // Computes the bounds of all groups up to `goal` once; later calls with at most this goal restore
  // the counts. Merges the results in the order of families, so that the result does not depend on
  // the threads.
  Status bound_families(int threads, const std::function<void(double)>& progress, double goal) {
    candidates_.clear();
    if (bounded_to_ >= goal) {
      result_ = bounded_;
      return Ok{};
    }
    result_ = {};
    groups_.clear();
    if (!families_.empty()) pricers_.take_back_all();
    families_.clear();
    std::atomic<std::int64_t> kept = 0, done = 0;
    const std::thread::id speaker = std::this_thread::get_id();
    std::mutex mutex;
    std::vector<Found> found(static_cast<std::size_t>(plans_.families()));
    parallel_for(plans_.families(), threads, [&]() -> IndexWork {
      const auto families = std::make_shared<FamilySearch>(pricers_.take(), plans_, space_);
      {
        const std::lock_guard lock(mutex);
        families_.push_back(families);
      }
      return [&, families](std::int64_t i) {
        if (kept > most_ || space_.is_late()) return;
        Found& part = found[static_cast<std::size_t>(i)];
        part = families->bound_groups(i, goal, slow_);
        kept += static_cast<std::int64_t>(part.groups.size());
        const auto share = static_cast<double>(++done) / static_cast<double>(plans_.families());
        if (progress && std::this_thread::get_id() == speaker) progress(kBoundsShare * share);
      };
    });
    if (kept > most_) return too_many_fit();
    for (Found& part : found) add(part);
    if (done < plans_.families()) {
      result_.visited = static_cast<double>(done) / static_cast<double>(plans_.families());
    }
    bounded_ = result_;
    bounded_to_ = goal;
    return Ok{};
  }

  void add(Found& part) {
    result_.considered += part.count.considered;
    for (const auto& [reason, n] : part.count.pruned) result_.pruned[reason] += n;
    const auto prune = [&](const char* reason, std::int64_t plans) {
      if (plans > 0) result_.pruned[reason] += plans;
    };
    prune(kOverMemory, part.over_memory);
    prune(kOverHost, part.over_host);
    prune(kMoreRecompute, part.more_recompute);
    prune(kTooLong, part.too_long);
    prune(kNotAsGood, part.not_as_good);
    result_.not_as_good += part.not_as_good;
    result_.not_compared += part.not_compared;
    result_.feasible += static_cast<std::int64_t>(part.candidates.size());
    candidates_.insert(candidates_.end(), part.candidates.begin(), part.candidates.end());
    groups_.insert(groups_.end(), part.groups.begin(), part.groups.end());
    part = {};
  }

  static Error too_many_fit() {
    return Error{
        ErrorKind::kDoesNotFit,
        fmt::format(
            "more than {} plans fit; ranking them needs more memory than the default limit allows",
            kMostCandidates),
        "", "fix more settings, or add --no-limits to lift the limit"};
  }

  // Returns the completed share of the search after `done` of `all` candidates or groups.
  static double share_done(std::size_t done, std::size_t all) {
    const double part = static_cast<double>(done) / static_cast<double>(all);
    return kBoundsShare + (1 - kBoundsShare) * part;
  }

  struct Scored {
    double score = 0;
    Candidate candidate;
  };

  static bool is_better(const Scored& a, const Scored& b) {
    return std::pair(a.score, a.candidate.place) < std::pair(b.score, b.candidate.place);
  }

  bool groups_layouts() const { return space_.group == Grouping::kLayout; }

  // Inserts a plan into the `top` best. Keeps only the best candidate with each index: candidates
  // with equal indices differ only in the number of recomputed blocks. If the search ranks layouts,
  // keeps only the best candidate of each.
  void keep(const Scored& scored, std::vector<Scored>& best) const {
    const auto same = std::find_if(best.begin(), best.end(), [&](const Scored& other) {
      return groups_layouts() ? other.candidate.plan.degrees == scored.candidate.plan.degrees
                              : other.candidate.place == scored.candidate.place;
    });
    if (same != best.end()) {
      if (groups_layouts() ? !is_better(scored, *same) : same->score <= scored.score) return;
      best.erase(same);
    }
    best.insert(std::upper_bound(best.begin(), best.end(), scored, is_better), scored);
    if (best.size() > top_) best.pop_back();
  }

  // Processes groups and plans in ascending order of their bounds. A group is expanded into its
  // plans; a plan is simulated. Stops when the lowest bound exceeds the worst of the `top` best
  // scores, or at SearchSpace::until if there are plans.
  Status open_best(std::vector<BoundedGroup>& groups, const std::function<void(double)>& progress,
                   std::vector<Scored>& best) {
    std::sort(groups.begin(), groups.end(), [](const BoundedGroup& a, const BoundedGroup& b) {
      return std::pair(a.bound, a.place) < std::pair(b.bound, b.place);
    });
    const auto comes_later = [this](std::size_t a, std::size_t b) {
      return comes_before(candidates_[b], candidates_[a]);
    };
    std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(comes_later)> open(
        comes_later);
    const auto goal = [&] {
      return best.size() == top_ ? std::min(cap_, best.back().score) : cap_;
    };
    // Returns the goal of plans with these degrees: if the search ranks layouts, only a better plan
    // than the best one of the same layout is of interest.
    const auto goal_of = [&](const ParallelDegrees& degrees) {
      const auto same = std::find_if(best.begin(), best.end(), [&](const Scored& other) {
        return groups_layouts() && other.candidate.plan.degrees == degrees;
      });
      return same == best.end() ? goal() : std::min(goal(), same->score);
    };
    std::size_t group = 0;
    bool is_late = false;
    while (group < groups.size() || !open.empty()) {
      const bool opens = group < groups.size() &&
                         (open.empty() || groups[group].bound < candidates_[open.top()].bound);
      const double bound = opens ? groups[group].bound : candidates_[open.top()].bound;
      is_late = space_.is_late() && (has_plans_ || !best.empty());
      if (bound > goal() || is_late) break;
      if (opens) {
        if (progress && group % 64 == 0) progress(share_done(group, groups.size()));
        const std::size_t known = candidates_.size();
        Found found = families_.back()->open(groups[group], goal_of(groups[group].key.degrees));
        ++group;
        add(found);
        for (std::size_t i = known; i < candidates_.size(); ++i) open.push(i);
        if (static_cast<std::int64_t>(candidates_.size()) > most_) return too_many_fit();
      } else {
        const Candidate& candidate = candidates_[open.top()];
        open.pop();
        if (candidate.bound > goal_of(candidate.plan.degrees)) continue;
        const double score = exact_score(candidate);
        TPSIM_TRY(const bool keeps, is_below_cap(candidate, score));
        if (keeps) keep({score, candidate}, best);
        ++result_.simulated;
      }
    }
    Found left;
    if (is_late) {
      left.not_compared += std::ssize(open);
      result_.feasible -= std::ssize(open);
    }
    for (; group < groups.size(); ++group) {
      const bool may_be_better = is_late && groups[group].bound <= goal();
      (may_be_better ? left.not_compared : left.not_as_good) += groups[group].plans;
    }
    add(left);
    return Ok{};
  }

  Status add_plans(const std::vector<Scored>& best) {
    for (const Scored& scored : best) {
      TPSIM_TRY_STATUS(add_plan(scored.candidate));
      result_.scores.push_back(scored.score);
    }
    return Ok{};
  }

  Status open_front(const std::function<void(double)>& progress) {
    FrontSearch search(families_, most_, [this](const Candidate& candidate) {
      return exact_step(candidate).value();
    });
    const bool is_complete = search.run(groups_, [&](std::size_t group) {
      if (progress) progress(share_done(group, groups_.size()));
    });
    if (!is_complete) return too_many_fit();
    result_.feasible += search.feasible();
    result_.simulated += search.simulated();
    add(search.left_out());
    for (const Candidate& candidate : search.front()) TPSIM_TRY_STATUS(add_plan(candidate));
    return Ok{};
  }

  Seconds exact_step(const Candidate& candidate) {
    const Plan plan = whole_plan(candidate.plan, *candidate.cut);
    return step_cost(pricer(), plan, plan_costs(pricer(), plan), nullptr).step;
  }

  double exact_score(const Candidate& candidate) {
    if (space_.objective == Objective::kMemory) return candidate.peak;
    return score_of(space_.objective, candidate, exact_step(candidate).value());
  }

  // Whether the score, or with `surely` the score of the slow end of the interval, is below the
  // cap.
  Result<bool> is_below_cap(const Candidate& candidate, double score) {
    if (!surely_ || score >= cap_) return !surely_;
    TPSIM_TRY(const PlannedRun run, predicted(candidate));
    return score_of(space_.objective, candidate, run.predicted.step_high.value()) < cap_;
  }

  Result<PlannedRun> predicted(const Candidate& candidate) {
    Plan plan = whole_plan(candidate.plan, *candidate.cut);
    TPSIM_TRY(Prediction prediction, predict(pricer(), plan));
    return PlannedRun{std::move(plan), std::move(prediction)};
  }
  Status add_plan(const Candidate& candidate) {
    TPSIM_TRY(PlannedRun run, predicted(candidate));
    result_.plans.push_back(std::move(run));
    return Ok{};
  }

  // If no plan fits, sets nearest_miss to the plan with the lowest peak.
  Status find_nearest_miss() {
    const Candidate miss = nearest_miss(pricer(), plans_);
    if (miss.cut == nullptr) return Ok{};
    TPSIM_TRY(result_.nearest_miss, predicted(miss));
    return Ok{};
  }

  const SearchSpace& space_;
  std::size_t top_;
  double cap_;
  const SlowGroups* slow_;
  bool surely_;
  bool seeks_miss_;         // whether to compute SearchResult::nearest_miss if no plan fits
  bool has_plans_ = false;  // an earlier search found as many plans as are wanted
  PricerPool& pricers_;
  PlanSpace plans_;
  std::int64_t most_;  // maximum number of candidates or groups
  // One object per thread. Its pricer caches layers.
  std::vector<std::shared_ptr<FamilySearch>> families_;
  SearchResult result_;
  SearchResult bounded_;    // counts after bound_families()
  double bounded_to_ = -1;  // largest goal of the kept groups; negative before bound_families()
  std::vector<Candidate> candidates_;
  std::vector<BoundedGroup> groups_;
};

}  // namespace tpsim

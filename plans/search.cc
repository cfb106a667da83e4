#include "plans/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <tuple>

#include "plans/enumerate.h"
#include "plans/family_search.h"
#include "plans/parallel_for.h"
#include "plans/search_work.h"
#include "sim/predict.h"
#include "sim/step.h"

namespace tpsim {
namespace {

constexpr const char* kOverMemory = "would run out of memory";
constexpr const char* kOverHost = "needs more memory than a host has";
constexpr const char* kTooLong = "a step may take longer than is counted";
// What bounds take of a search, as its progress counts: simulating stops early more often than not.
constexpr double kBoundsShare = 0.9;
constexpr const char* kMoreRecompute = "recomputes more blocks than memory asks for";

bool comes_before(const Candidate& a, const Candidate& b) {
  return std::tuple(a.bound, a.place, a.plan.recompute_blocks) <
         std::tuple(b.bound, b.place, b.plan.recompute_blocks);
}

Plan whole_plan(const Plan& settings, const StageCut& cut) {
  Plan plan = settings;
  plan.stage_layers = cut.layers;
  return plan;
}

class Search {
 public:
  Search(const Scenario& scenario, const SearchSpace& space, int top)
      : space_(space),
        top_(static_cast<std::size_t>(std::max(1, top))),
        prices_(std::make_shared<const PriceLists>(scenario)),
        pricer_(prices_),
        plans_(prices_->scenario, space) {}

  Result<SearchResult> best(const std::function<void(double)>& progress, int threads) {
    return timed([&]() -> Status {
      TPSIM_TRY_STATUS(
          evaluate_families(threads, space_.objective == Objective::kMemory, progress));
      return choose_best(progress);
    });
  }

  Result<SearchResult> front(const std::function<void(double)>& progress, int threads) {
    return timed([&]() -> Status {
      TPSIM_TRY_STATUS(evaluate_families(threads, true, progress));
      return choose_front(progress);
    });
  }

 private:
  template <class Work>
  Result<SearchResult> timed(const Work& work) {
    const auto start = std::chrono::steady_clock::now();
    TPSIM_TRY_STATUS(work());
    if (candidates_.empty()) TPSIM_TRY_STATUS(find_nearest_miss());
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    result_.elapsed = Seconds(elapsed.count());
    return std::move(result_);
  }

  // What threads find is put together in the order of families, whoever was first.
  Status evaluate_families(int threads, bool trades_memory,
                           const std::function<void(double)>& progress) {
    std::atomic<std::int64_t> kept = 0, done = 0;
    const std::thread::id speaker = std::this_thread::get_id();
    const bool is_limited = pricer_.scenario().limits.memory < kNoLimits.memory;
    const std::int64_t most =
        is_limited ? kMostCandidates : std::numeric_limits<std::int64_t>::max();
    std::vector<FamilySearch::Found> found(static_cast<std::size_t>(plans_.families()));
    parallel_for(plans_.families(), threads, [&]() -> IndexWork {
      const auto families = std::make_shared<FamilySearch>(prices_, plans_, space_, trades_memory);
      return [&, families](std::int64_t i) {
        if (kept > most) return;
        FamilySearch::Found& part = found[static_cast<std::size_t>(i)];
        part = families->run(i, most);
        kept += static_cast<std::int64_t>(part.candidates.size());
        const auto share = static_cast<double>(++done) / static_cast<double>(plans_.families());
        if (progress && std::this_thread::get_id() == speaker) progress(kBoundsShare * share);
      };
    });
    if (kept > most) return too_many_fit();
    EnumerationCount count;
    for (FamilySearch::Found& part : found) {
      count += part.count;
      if (part.over_memory > 0) count.pruned[kOverMemory] += part.over_memory;
      if (part.over_host > 0) count.pruned[kOverHost] += part.over_host;
      if (part.more_recompute > 0) count.pruned[kMoreRecompute] += part.more_recompute;
      if (part.too_long > 0) count.pruned[kTooLong] += part.too_long;
      candidates_.insert(candidates_.end(), part.candidates.begin(), part.candidates.end());
      part.candidates = {};
    }
    result_.considered = count.considered;
    result_.pruned = std::move(count.pruned);
    result_.feasible = static_cast<std::int64_t>(candidates_.size());
    return Ok{};
  }

  static Error too_many_fit() {
    return Error{ErrorKind::kDoesNotFit,
                 fmt::format("more than {} plans fit: ranking them takes more memory than is used "
                             "unasked",
                             kMostCandidates),
                 "", "hold more settings to a value, or lift the limit with --no-limits"};
  }

  // Of the whole search, once `done` candidates were simulated or passed over.
  double share_simulated(std::size_t done) const {
    const double part = static_cast<double>(done) / static_cast<double>(candidates_.size());
    return kBoundsShare + (1 - kBoundsShare) * part;
  }

  struct Scored {
    double score = 0;
    const Candidate* candidate = nullptr;
  };

  // Of candidates that share a place only the best stays.
  void keep(const Scored& scored, std::vector<Scored>& best) const {
    const auto same = std::find_if(best.begin(), best.end(), [&](const Scored& other) {
      return other.candidate->place == scored.candidate->place;
    });
    if (same != best.end()) {
      if (same->score <= scored.score) return;
      best.erase(same);
    }
    const auto here =
        std::upper_bound(best.begin(), best.end(), scored, [](const Scored& a, const Scored& b) {
          return std::pair(a.score, a.candidate->place) < std::pair(b.score, b.candidate->place);
        });
    best.insert(here, scored);
    if (best.size() > top_) best.pop_back();
  }

  // Bounds never exceed the exact score, so once a bound passes the worst of the best `top` nothing
  // better can follow.
  Status choose_best(const std::function<void(double)>& progress) {
    std::sort(candidates_.begin(), candidates_.end(), comes_before);
    std::vector<Scored> best;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      if (best.size() == top_ && candidate.bound > best.back().score) break;
      keep({exact_score(candidate), &candidate}, best);
      if (progress && i % 64 == 0) progress(share_simulated(i));
      ++result_.simulated;
    }
    for (const Scored& scored : best) {
      TPSIM_TRY_STATUS(add_plan(*scored.candidate));
      result_.scores.push_back(scored.score);
    }
    return Ok{};
  }

  // In the order of their bounds: what an exact plan beats with its bound already is beaten.
  Status choose_front(const std::function<void(double)>& progress) {
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return std::tuple(a.step, a.peak, a.place) < std::tuple(b.step, b.peak, b.place);
    });
    std::vector<Candidate> front;  // with exact steps
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      Candidate candidate = candidates_[i];
      const auto beats_it = [&](const Candidate& other) { return beats(other, candidate); };
      if (progress && i % 64 == 0) progress(share_simulated(i));
      if (std::any_of(front.begin(), front.end(), beats_it)) continue;
      candidate.step = exact_step(candidate).value();
      ++result_.simulated;
      if (std::any_of(front.begin(), front.end(), beats_it)) continue;
      std::erase_if(front, [&](const Candidate& other) { return beats(candidate, other); });
      front.push_back(candidate);
    }
    std::sort(front.begin(), front.end(), [](const Candidate& a, const Candidate& b) {
      return std::tuple(a.step, a.peak, a.place) < std::tuple(b.step, b.peak, b.place);
    });
    for (const Candidate& candidate : front) TPSIM_TRY_STATUS(add_plan(candidate));
    return Ok{};
  }

  // No worse in anything; of equals the first of the enumeration.
  static bool beats(const Candidate& a, const Candidate& b) {
    const double a_gpus = a.step * static_cast<double>(gpu_count(a.plan));
    const double b_gpus = b.step * static_cast<double>(gpu_count(b.plan));
    return a.step <= b.step && a.peak <= b.peak && a_gpus <= b_gpus;
  }

  Seconds exact_step(const Candidate& candidate) {
    const Plan plan = whole_plan(candidate.plan, *candidate.cut);
    return step_cost(pricer_, plan, plan_costs(pricer_, plan), nullptr).step;
  }

  double exact_score(const Candidate& candidate) {
    if (space_.objective == Objective::kMemory) return candidate.peak;
    return score_of(space_.objective, candidate, exact_step(candidate).value());
  }

  Result<PlannedRun> predicted(const Candidate& candidate) {
    Plan plan = whole_plan(candidate.plan, *candidate.cut);
    TPSIM_TRY(Prediction prediction, predict(pricer_, plan));
    return PlannedRun{std::move(plan), std::move(prediction)};
  }
  Status add_plan(const Candidate& candidate) {
    TPSIM_TRY(PlannedRun run, predicted(candidate));
    result_.plans.push_back(std::move(run));
    return Ok{};
  }

  // Of all plans, none of which fits, the one with the lowest peak.
  Status find_nearest_miss() {
    if (result_.pruned.count(kTooLong) > 0) return step_too_long(pricer_.scenario());
    PlanBounds bounds(pricer_);
    Candidate miss;
    for (std::int64_t family = 0; family < plans_.families(); ++family) {
      plans_.visit_family(family, [&](const Plan& settings, const StageCut& cut) {
        Plan plan = settings;
        if (plan.offload == Offload::kOptimizer && !bounds.fits_hosts(plan, cut)) return;
        const auto consider = [&] {
          const Bytes lowest(miss.cut == nullptr ? std::numeric_limits<double>::max() : miss.peak);
          const Bytes peak = bounds.evaluate(plan, cut, lowest).peak;
          if (miss.cut == nullptr || peak < lowest) miss = {0, 0, peak.value(), 0, 0, plan, &cut};
        };
        if (plan.recompute != Recompute::kBlocks) return consider();
        for (const std::int64_t blocks : plans_.recompute_counts(cut)) {
          plan.recompute_blocks = blocks;
          consider();
        }
      });
      pricer_.drop_traces();
    }
    if (miss.cut == nullptr) return Ok{};
    TPSIM_TRY(result_.nearest_miss, predicted(miss));
    return Ok{};
  }

  const SearchSpace& space_;
  std::size_t top_;
  std::shared_ptr<const PriceLists> prices_;
  LayerPricer pricer_;
  PlanSpace plans_;
  SearchResult result_;
  std::vector<Candidate> candidates_;
};

// Of two searches of which the first found nothing.
SearchResult joined(SearchResult first, SearchResult second) {
  second.considered += first.considered;
  for (const auto& [reason, count] : first.pruned) second.pruned[reason] += count;
  second.elapsed += first.elapsed;
  if (!second.plans.empty()) return second;
  const auto peak = [](const SearchResult& found) { return found.nearest_miss->predicted.peak; };
  const bool first_is_nearer =
      first.nearest_miss && (!second.nearest_miss || peak(first) <= peak(second));
  if (first_is_nearer) second.nearest_miss = std::move(first.nearest_miss);
  return second;
}

using SearchOf = std::function<Result<SearchResult>(const SearchSpace&)>;

Result<SearchResult> with_offload_if_needed(const Scenario& scenario, const SearchSpace& space,
                                            const SearchOf& run) {
  TPSIM_TRY(SearchResult found, run(space));
  const bool asks_nothing = may_offload(scenario, space);
  found.offload_left_out = asks_nothing && found.pruned.count(kOverMemory) > 0;
  if (!found.plans.empty() || !asks_nothing) return found;
  SearchSpace offloaded = space;
  offloaded.asked[Setting::kOffload] = {static_cast<std::int64_t>(Offload::kOptimizer)};
  TPSIM_TRY(SearchResult second, run(offloaded));
  return joined(std::move(found), std::move(second));
}

}  // namespace

Result<SearchResult> search(const Scenario& scenario, const SearchSpace& space, int top,
                            const std::function<void(double)>& progress, int threads) {
  TPSIM_TRY_STATUS(check_space(scenario, space, top));
  return with_offload_if_needed(scenario, space, [&](const SearchSpace& part) {
    return Search(scenario, part, top).best(progress, threads);
  });
}

Result<SearchResult> pareto_front(const Scenario& scenario, const SearchSpace& space,
                                  const std::function<void(double)>& progress, int threads) {
  TPSIM_TRY_STATUS(check_space(scenario, space, 1));
  return with_offload_if_needed(scenario, space, [&](const SearchSpace& part) {
    return Search(scenario, part, 1).front(progress, threads);
  });
}

}  // namespace tpsim
